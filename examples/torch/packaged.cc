// Runs a model that torch packaged with AOTInductor and that has te_select::where. No Python.
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>
#include <torch/torch.h>

#include <iostream>

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: packaged MODEL.pt2\n";
    return 2;
  }
  torch::inductor::AOTIModelPackageLoader model(argv[1]);
  torch::Tensor scores = torch::arange(48, torch::kFloat32).reshape({4, 12});
  torch::Tensor mask = torch::arange(12).remainder(3).eq(0);
  std::vector<torch::Tensor> outputs = model.run({mask, scores});
  std::cout << outputs[0].sum().item<float>() << "\n";
}
