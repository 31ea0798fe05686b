/** What `check-config --online` finds out: each server of a configuration is asked once for its list of models. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as References from "effect/References"
import { Deadlines } from "../../config/clock/Deadlines.ts"
import { ConfigStore } from "../../config/ConfigStore.ts"
import type { RawConfig } from "../../config/json.ts"
import * as UpstreamLayer from "../../upstream/layer.ts"
import { readOnce } from "../../upstream/readModels.ts"
import { layerUndici } from "../../upstream/transports/undici.ts"
import { Upstreams } from "../../upstream/Upstreams.ts"

/** A sentence for each server that does not answer, and for each configured model that a list lacks. */
export const onlineFindings = (raw: RawConfig) =>
  Effect.gen(function*() {
    const config = (yield* ConfigStore).now()
    const found = yield* readOnce(config, yield* (yield* Upstreams).all)
    return found.map(({ message }) => message)
  }).pipe(
    Effect.provide(
      UpstreamLayer.layer.pipe(
        Layer.provide(layerUndici),
        Layer.provideMerge([ConfigStore.layerJson(raw), Deadlines.layer])
      )
    ),
    // The command prints the warnings of the configuration, which the store would log.
    Effect.provideService(References.MinimumLogLevel, "Error")
  )
