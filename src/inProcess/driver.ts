/**
 * An upstream of an embedding app.
 */
import type * as Layer from "effect/Layer"
import type { Driver } from "../upstream/Upstream.ts"
import { Upstreams } from "../upstream/Upstreams.ts"

/** The app's upstream alone, by the name of the configuration's group `upstream`, whose `driver` is ignored. */
export const fixedUpstream = (driver: Driver): Layer.Layer<Upstreams> => Upstreams.layerOf(driver)
