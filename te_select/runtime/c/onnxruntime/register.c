/* What ONNX Runtime calls when a program registers the library: our operators in two domains. In the
 * domain of ONNX they take the place of its own Where, for models as they are; in our own domain they
 * are for models that te_select.onnxruntime.rewrite has made. */
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
  } types[TYPES] = {
      {ORT_FLOAT, 4},  {ORT_UINT8, 1},   {ORT_INT8, 1},   {ORT_UINT16, 2}, {ORT_INT16, 2},
      {ORT_INT32, 4},  {ORT_INT64, 8},   {ORT_STRING, 0}, {ORT_BOOL, 1},   {ORT_FLOAT16, 2},
      {ORT_DOUBLE, 8}, {ORT_UINT32, 4},  {ORT_UINT64, 8}, {ORT_BFLOAT16, 2}};
  static const struct {
    const char* name;
    int first_version;
  } domains[DOMAINS] = {{"", 9}, {"te.select", 1}};
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

__attribute__((visibility("default"))) OrtStatus* RegisterCustomOps(OrtSessionOptions* options,
                                                                    const OrtApiBase* base) {
  registry* found;
  unsigned major = 0, minor = 0;
  sscanf(base->GetVersionString(), "%u.%u", &major, &minor);
  const OrtApi* api = NULL;
  uint32_t version = minor >= ORT_VERSION_WITH_REFERENCES ? ORT_VERSION_WITH_REFERENCES : ORT_LEAST_VERSION;
  if (major == 1 && minor >= ORT_LEAST_VERSION) api = base->GetApi(version);
  if (!api) {
    char text[160];
    snprintf(text, sizeof(text),
             "te_select needs ONNX Runtime 1.%d or newer, of version 1; this is %.40s",
             ORT_LEAST_VERSION, base->GetVersionString());
    return base->GetApi(OLDEST_VERSION)->CreateStatus(ORT_FAIL, text);
  }
  ORT_TRY(find(api, version, &found));
  for (int k = 0; k < DOMAINS; ++k) ORT_TRY(api->AddCustomOpDomain(options, found->domains[k]));
  return NULL;
}
