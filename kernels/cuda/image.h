// What the loaded device code can do, read from the image that the driver chose for the device.
#pragma once

#include <functional>
#include <optional>

namespace drama3 {

struct ImageFeatures {
  bool overlap = false;   // programmatic dependent launch
  bool clusters = false;  // thread block clusters
};

// The two questions put to the driver; tests put their own answers in its place.
struct ImageDriver {
  // The value of the image's device global `drama3_image_compiled_for`: the compute capability (times ten)
  // the image was compiled for. Nothing where the look-up is refused.
  std::function<std::optional<int>(int device)> compiled_for;
  // The device's own compute capability (times ten).
  std::function<int(int device)> capability;
};

// Asks CUDA's runtime.
ImageDriver runtime_image_driver();

// Features of the image loaded on a device of this process. Images for less than 9.0 hold the plain kernels
// only, whatever device they run on, and a refused look-up means such an image.
ImageFeatures image_features(const ImageDriver& driver, int device);

}  // namespace drama3
