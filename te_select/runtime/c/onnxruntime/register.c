/* What ONNX Runtime calls when a program registers the library: our operators in two domains. In our
 * own domain they are for models that te_select.onnxruntime.rewrite has made. In the domain of ONNX
 * they take the place of its own Where, for models as they are, unless the session is configured not
 * to: "te_select.override" is "0". */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "where_op.h"

enum { TYPES = 14, DOMAINS = 2, OLDEST_VERSION = 1 };

/* The operators for one copy of ONNX Runtime, which has them as long as the process runs. */
typedef struct registry {
  const OrtApi* api;
  te_select_where_op ops[DOMAINS][TYPES];
  OrtCustomOpDomain* domains[DOMAINS];
  struct registry* next;
} registry;

static OrtStatus* fill(registry* made, const OrtApi* api, uint32_t version) {
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
      *op = te_select_make_where_op(api, version, types[i].type, types[i].width);
      op->first_version = domains[k].first_version;
      ORT_TRY(api->CustomOpDomain_Add(made->domains[k], &op->op));
    }
  }
  return NULL;
}

/* The operators for this API, which are made when they are first asked for. */
static OrtStatus* find(const OrtApi* api, uint32_t version, registry** found) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  static registry* first;
  OrtStatus* status = NULL;
  pthread_mutex_lock(&lock);
  for (*found = first; *found && (*found)->api != api;) *found = (*found)->next;
  if (!*found) {
    registry* made = calloc(1, sizeof(registry));
    status = made ? fill(made, api, version) : api->CreateStatus(ORT_FAIL, "te_select: no memory");
    if (status) {
      free(made);
    } else {
      made->api = api;
      made->next = first;
      *found = first = made;
    }
  }
  pthread_mutex_unlock(&lock);
  return status;
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
  registry* found;
  int count = 0;
  unsigned major = 0, minor = 0;
  sscanf(base->GetVersionString(), "%u.%u", &major, &minor);
  const OrtApi* api = NULL;
  uint32_t version =
      minor >= ORT_VERSION_WITH_REFERENCES ? ORT_VERSION_WITH_REFERENCES : ORT_LEAST_VERSION;
  if (major == 1 && minor >= ORT_LEAST_VERSION) api = base->GetApi(version);
  if (!api) {
    char text[160];
    snprintf(text, sizeof(text),
             "te_select needs ONNX Runtime 1.%d or newer, of version 1; this is %.40s",
             ORT_LEAST_VERSION, base->GetVersionString());
    return base->GetApi(OLDEST_VERSION)->CreateStatus(ORT_FAIL, text);
  }
  ORT_TRY(find(api, version, &found));
  ORT_TRY(count_domains(api, options, &count));
  for (int k = 0; k < count; ++k) ORT_TRY(api->AddCustomOpDomain(options, found->domains[k]));
  return NULL;
}
