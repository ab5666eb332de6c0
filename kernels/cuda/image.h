// What the loaded device code can do, read from the image that the driver chose for the device.
#pragma once

#include <functional>

namespace drama3 {

struct ImageFeatures {
  bool overlap = false;   // programmatic dependent launch
  bool clusters = false;  // thread block clusters
};

// What a look-up of the image's marker kernel says: the compute capability (times ten) it was compiled for.
struct ImageMarker {
  bool found = false;
  int compiled_for = 0;
};

// Features of an image on a device of that compute capability (times ten); a marker that was not found means
// none.
ImageFeatures features_of(const ImageMarker& marker, int device_capability);

// The same for the image loaded on a device of this process.
ImageFeatures image_features(int device);

}  // namespace drama3
