// Calls an exported kernel from C++ with the headers and library of apache-tvm-ffi alone:
//
//   te-select compile --cond 4,1 --then 4,8 --else "" --dtype float32 -o build/small.so
//   FLAGS="$(tvm-ffi-config --cxxflags) $(tvm-ffi-config --ldflags) $(tvm-ffi-config --libs)"
//   g++ examples/tvm_ffi/main.cc -o build/main $FLAGS -Wl,-rpath,$(tvm-ffi-config --libdir)
//   build/main build/small.so
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/extra/module.h>
#include <tvm/ffi/function.h>

#include <cstdint>
#include <cstdio>
#include <limits>
#include <vector>

namespace {

constexpr const char* kSymbol = "select_float32_numpy_c4x1_t4x8_e";  // Workload.name

// A compact tensor on the CPU over memory that stays the caller's.
DLTensor View(void* data, DLDataType dtype, std::vector<int64_t>& shape) {
  return DLTensor{
      data, {kDLCPU, 0}, static_cast<int32_t>(shape.size()), dtype, shape.data(), nullptr, 0};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s SMALL.so\n", argv[0]);
    return 2;
  }
  const DLDataType boolean{kDLBool, 8, 1}, float32{kDLFloat, 32, 1};
  std::vector<int64_t> cond_shape{4, 1}, shape{4, 8}, scalar{};
  std::vector<uint8_t> cond{1, 0, 0, 1};
  std::vector<float> then(32), out(32);
  for (int i = 0; i < 32; ++i) then[i] = static_cast<float>(i);
  float else_ = -std::numeric_limits<float>::infinity();

  DLTensor c = View(cond.data(), boolean, cond_shape), t = View(then.data(), float32, shape),
           e = View(&else_, float32, scalar), o = View(out.data(), float32, shape);
  try {
    tvm::ffi::Module library = tvm::ffi::Module::LoadFromFile(argv[1]);
    tvm::ffi::Optional<tvm::ffi::Function> select = library->GetFunction(kSymbol);
    if (!select.has_value()) {
      std::fprintf(stderr, "%s has no function %s\n", argv[1], kSymbol);
      return 1;
    }
    select.value()(&c, &t, &e, &o);
  } catch (const tvm::ffi::Error& error) {
    std::fprintf(stderr, "%s: %s\n", error.kind().c_str(), error.message().c_str());
    return 1;
  }
  for (int i = 0; i < 32; ++i) {
    if (out[i] != (cond[i / 8] ? then[i] : else_)) return 1;
  }
  std::puts("32 elements selected from C++");
}
