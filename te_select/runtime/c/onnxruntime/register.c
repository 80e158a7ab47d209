/* What ONNX Runtime calls when a program registers the library: our operators in two domains. In our
 * own domain they are for models that te_select.onnxruntime.rewrite has made. In the domain of ONNX
 * they take the place of its own Where, for models as they are, unless the session is configured not
 * to: "te_select.override" is "0". */
#include <pthread.h>
#include <stdio.h>

#include "where_op.h"

enum { TYPES = 14, DOMAINS = 2 };

/* The operators for the ONNX Runtime of this process, which has them as long as it runs. */
typedef struct {
  const OrtApi* api;
  te_select_where_op ops[DOMAINS][TYPES];
  OrtCustomOpDomain* domains[DOMAINS];
} registry;

static OrtStatus* fill(registry* made, const OrtApi* api) {
  static const struct {
    int type, width;
  } types[TYPES] = {{ORT_FLOAT, 4},  {ORT_UINT8, 1},   {ORT_INT8, 1},   {ORT_UINT16, 2},
                    {ORT_INT16, 2},  {ORT_INT32, 4},   {ORT_INT64, 8},  {ORT_STRING, 0},
                    {ORT_BOOL, 1},   {ORT_FLOAT16, 2}, {ORT_DOUBLE, 8}, {ORT_UINT32, 4},
                    {ORT_UINT64, 8}, {ORT_BFLOAT16, 2}};
  static const struct {
    const char* name;
    int first_version;
  } domains[DOMAINS] = {{"te.select", 1}, {"", 9}};
  for (int k = 0; k < DOMAINS; ++k) {
    ORT_TRY(api->CreateCustomOpDomain(domains[k].name, &made->domains[k]));
    for (int i = 0; i < TYPES; ++i) {
      te_select_where_op* op = &made->ops[k][i];
      *op = te_select_make_where_op(api, types[i].type, types[i].width, domains[k].first_version);
      ORT_TRY(api->CustomOpDomain_Add(made->domains[k], &op->op));
    }
  }
  made->api = api;
  return NULL;
}

/* The operators are made when they are first asked for. */
static OrtStatus* find(const OrtApi* api, const registry** found) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  static registry only;
  OrtStatus* status = NULL;
  pthread_mutex_lock(&lock);
  if (!only.api) status = fill(&only, api);
  pthread_mutex_unlock(&lock);
  *found = &only;
  if (status || only.api == api) return status;
  return api->CreateStatus(
      ORT_FAIL, "te_select: another ONNX Runtime has this library; register a copy of the file");
}

static OrtStatus* count_domains(const OrtApi* api, const OrtSessionOptions* options, int* count) {
  static const char key[] = "te_select.override";
  char value[8] = "1";
  size_t bytes = sizeof(value);
  int is_set = 0;
  ORT_TRY(api->HasSessionConfigEntry(options, key, &is_set));
  if (is_set) ORT_TRY(api->GetSessionConfigEntry(options, key, value, &bytes));
  if (value[1] || (*value != '0' && *value != '1')) {
    return api->CreateStatus(ORT_INVALID_ARGUMENT, "te_select.override: expected 0 or 1");
  }
  *count = *value == '1' ? DOMAINS : 1;
  return NULL;
}

__attribute__((visibility("default"))) OrtStatus* RegisterCustomOps(OrtSessionOptions* options,
                                                                    const OrtApiBase* base) {
  const registry* found;
  int count = 0;
  unsigned major = 0, minor = 0;
  sscanf(base->GetVersionString(), "%u.%u", &major, &minor);
  const OrtApi* api = major == 1 && minor >= ORT_VERSION ? base->GetApi(ORT_VERSION) : NULL;
  if (!api) {
    char text[160];
    snprintf(text, sizeof(text),
             "te_select needs ONNX Runtime 1.%d or newer, of version 1; this is %.40s", ORT_VERSION,
             base->GetVersionString());
    api = base->GetApi(ORT_OLDEST_VERSION);
    return api ? api->CreateStatus(ORT_FAIL, text) : NULL;
  }
  ORT_TRY(find(api, &found));
  ORT_TRY(count_domains(api, options, &count));
  for (int k = 0; k < count; ++k) ORT_TRY(api->AddCustomOpDomain(options, found->domains[k]));
  return NULL;
}
