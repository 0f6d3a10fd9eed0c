// Everything a kernel header may use. Kernel headers include no standard header: they are compiled inside a namespace
// per instruction set, and by NVRTC.
#pragma once
#include "base/adam.h"
#include "base/bucket.h"
#include "base/chain.h"
#include "base/constant.h"
#include "base/first_seen.h"
#include "base/in_order.h"
#include "base/lane.h"
#include "base/math.h"
#include "base/moments.h"
#include "base/rng.h"
#include "base/row_loss.h"
#include "base/share.h"
#include "base/sketch.h"
#include "base/sum.h"
#include "base/tally.h"
#include "base/thunk.h"
#include "base/update.h"
#include "base/vocabulary.h"
#if !ST_CUDA
#include "base/product.h"
#endif
