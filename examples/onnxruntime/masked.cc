// ONNX Runtime with Where by te-select, from C++. docs/onnxruntime.md says how it is built.
#include <onnxruntime_c_api.h>

#include <cstring>
#include <iostream>
#include <stdexcept>

const OrtApi& ort = *OrtGetApiBase()->GetApi(ORT_API_VERSION);

void Check(OrtStatus* status) {
  if (status) throw std::runtime_error(ort.GetErrorMessage(status));
}

int main(int, char** argv) {
  OrtEnv* env;
  OrtSessionOptions* options;
  OrtSession* session;
  const OrtEpDevice* const* devices;
  std::size_t count;
  Check(ort.CreateEnv(ORT_LOGGING_LEVEL_WARNING, "masked", &env));
  Check(ort.RegisterExecutionProviderLibrary(env, "te_select", argv[1]));
  Check(ort.GetEpDevices(env, &devices, &count));
  Check(ort.CreateSessionOptions(&options));
  for (const char* name : {"TeSelectExecutionProvider", "CPUExecutionProvider"}) {
    std::size_t i = 0;
    while (std::strcmp(ort.EpDevice_EpName(devices[i]), name)) ++i;
    Check(ort.SessionOptionsAppendExecutionProvider_V2(options, env, &devices[i], 1, 0, 0, 0));
  }
  Check(ort.CreateSession(env, argv[2], options, &session));

  bool mask[] = {true, false};
  float x[] = {1, 2}, *out;
  const std::int64_t shape[] = {2};
  OrtMemoryInfo* cpu;
  OrtValue *inputs[2], *output = nullptr;
  Check(ort.CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &cpu));
  Check(ort.CreateTensorWithDataAsOrtValue(cpu, mask, sizeof(mask), shape, 1,
                                           ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL, &inputs[0]));
  Check(ort.CreateTensorWithDataAsOrtValue(cpu, x, sizeof(x), shape, 1,
                                           ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &inputs[1]));
  const char *names[] = {"mask", "x"}, *of_output[] = {"o"};
  Check(ort.Run(session, nullptr, names, inputs, 2, of_output, 1, &output));
  Check(ort.GetTensorMutableData(output, reinterpret_cast<void**>(&out)));
  std::cout << out[0] << " " << out[1] << "\n";
}
