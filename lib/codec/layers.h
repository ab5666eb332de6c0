// The two layers that decoder and encoder share: the windowed transformer and the ConvNeXt block.
#pragma once

#include <functional>
#include <string_view>

#include "lib/codec/state.h"

namespace drama3::codec {

// Sees every stage of a call as rows [time, channels] in the backend's memory; the names are those of the
// reference data.
using Observer = std::function<void(std::string_view stage, const View& rows)>;

// rows [time, latent] through all layers, in place; `flat` is scratch of transformer_elements().
void transform(Ops& ops, const View& rows, const Transformer& part, const TransformerState& state,
               const View& flat);

// rows [time, latent] in place; `spare` has as many elements, `wide` four times as many.
void conv_next(Ops& ops, const View& rows, const ConvNext& part, const View& tail, const View& spare,
               const View& wide);

}  // namespace drama3::codec
