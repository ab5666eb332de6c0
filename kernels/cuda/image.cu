// The marker of the image, and the listing of devices.
#include "kernels/cuda/image.h"

#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "kernels/cuda/common/check.h"
#include "kernels/cuda/cuda_backend.h"

// Each image of the program carries its own value. It is no constant, so that it is kept although no kernel
// reads it.
extern "C" {
#ifdef __CUDA_ARCH__
__device__ int drama3_image_compiled_for = __CUDA_ARCH__ / 10;
#else
__device__ int drama3_image_compiled_for = 0;
#endif
}

namespace drama3 {
namespace {

// The kernel driver's own version, or CUDA's number for it.
std::string driver_version() {
  std::ifstream file("/sys/module/nvidia/version");
  std::string version;
  if (file && std::getline(file, version) && !version.empty()) return version;
  int number = 0;
  if (cudaDriverGetVersion(&number) != cudaSuccess || number == 0) return "";
  return join("CUDA ", number / 1000, ".", number % 1000 / 10);
}

std::string uuid_text(const cudaUUID_t& uuid) {
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    char byte[4];
    std::snprintf(byte, sizeof byte, "%02x",
                  static_cast<unsigned>(static_cast<unsigned char>(uuid.bytes[i])));
    text += byte;
    if (i == 3 || i == 5 || i == 7 || i == 9) text += '-';
  }
  return text;
}

// The device as listed; its context is opened, which is how free memory is known.
CudaDevice describe(int index, const std::string& driver) {
  cudaDeviceProp properties;
  CUDA_CHECK(cudaGetDeviceProperties(&properties, index));
  CudaDevice device{.name = properties.name,
                    .major = properties.major,
                    .minor = properties.minor,
                    .total_bytes = static_cast<int64_t>(properties.totalGlobalMem),
                    .driver = driver,
                    .pci_id = {},
                    .uuid = uuid_text(properties.uuid)};
  char pci[32] = {};
  if (cudaDeviceGetPCIBusId(pci, sizeof pci, index) == cudaSuccess) device.pci_id = pci;
  size_t free = 0, total = 0;
  if (cudaSetDevice(index) == cudaSuccess && cudaMemGetInfo(&free, &total) == cudaSuccess) {
    device.free_bytes = static_cast<int64_t>(free);
  }
  return device;
}

}  // namespace

ImageFeatures image_features(const ImageDriver& driver, int device) {
  const bool both = driver.compiled_for(device).value_or(0) >= 90 && driver.capability(device) >= 90;
  return {.overlap = both, .clusters = both};
}

ImageDriver runtime_image_driver() {
  return {
      .compiled_for = [](int device) -> std::optional<int> {
        CUDA_CHECK(cudaSetDevice(device));
        int value = 0;
        const void* symbol = &drama3_image_compiled_for;
        if (cudaMemcpyFromSymbol(&value, symbol, sizeof value, 0, cudaMemcpyDeviceToHost) == cudaSuccess) {
          return value;
        }
        cudaGetLastError();  // a refused look-up is an answer, not a failure of the next call
        return std::nullopt;
      },
      .capability =
          [](int device) {
            int major = 0, minor = 0;
            CUDA_CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
            CUDA_CHECK(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device));
            return major * 10 + minor;
          }};
}

std::vector<CudaDevice> list_cuda_devices() {
  setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", /*overwrite=*/0);
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) {
    cudaGetLastError();  // no driver or no device
    return {};
  }
  const std::string driver = driver_version();
  std::vector<CudaDevice> devices;
  for (int i = 0; i < count; ++i) devices.push_back(describe(i, driver));
  return devices;
}

std::string cuda_build() {
  return join("CUDA ", CUDART_VERSION / 1000, ".", CUDART_VERSION % 1000 / 10, ", architectures ",
              DRAMA3_CUDA_ARCHITECTURES);
}

}  // namespace drama3
