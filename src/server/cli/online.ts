/** What `check-config --online` and `models show` find out: each server of a configuration is asked once for its list of models. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as References from "effect/References"
import { Deadlines } from "../../config/clock/Deadlines.ts"
import { ConfigStore } from "../../config/ConfigStore.ts"
import type { RawConfig } from "../../config/json.ts"
import { ListedModels } from "../../config/ListedModels.ts"
import { inLine } from "../../domain/printed.ts"
import * as UpstreamLayer from "../../upstream/layer.ts"
import { readOnce } from "../../upstream/readModels.ts"
import { layerUndici } from "../../upstream/transports/undici.ts"
import { Upstreams } from "../../upstream/Upstreams.ts"

/**
 * The configuration in effect with the models that its servers list, and a sentence for each server that does not answer, and for each
 * configured model that a list lacks.
 */
export const online = (raw: RawConfig) =>
  Effect.gen(function*() {
    const store = yield* ConfigStore
    const { setListedModels } = yield* ListedModels
    const lists = yield* readOnce(store.now(), yield* (yield* Upstreams).all)
    for (const { models, upstream } of lists) {
      if (models !== undefined) yield* setListedModels(upstream, models)
    }
    return {
      config: store.now(),
      findings: lists.flatMap(({ findings }) => findings.map(({ message }) => inLine(message)))
    }
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
