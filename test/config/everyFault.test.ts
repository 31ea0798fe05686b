/** Faults of a configuration are listed together, so that an operator mends them in one go. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { decodeConfig } from "../../src/config/decodeConfig.ts"
import type { RawConfig } from "../../src/config/json.ts"
import { CurrentVariables } from "../../src/config/references.ts"
import { storeUrlOf } from "../../src/config/storeSettings.ts"

const fieldsOf = (raw: RawConfig) =>
  decodeConfig(raw, { duplicates: "refuse" }).pipe(
    Effect.as([]),
    Effect.catchTag("ConfigInvalid", ({ faults }) => Effect.succeed(faults.map(({ field }) => field))),
    Effect.provideService(CurrentVariables, () => undefined)
  )

const gpu = { driver: "openai", base_url: "http://10.0.0.7:8000/v1", models: { small: "small" } }

describe("the faults of a configuration", () => {
  it.effect("of upstreams, routes and aliases are listed together", () =>
    Effect.gen(function*() {
      const found = yield* fieldsOf({
        upstream: { driver: "openai", base_url: "ftp://host", max_inflight: "many" },
        upstreams: {
          gpu,
          "Wrong Name": { ...gpu, base_url: "http://Host/v1" },
          typed: { ...gpu, max_inflight: "many", headers: { host: "x" }, timeouts: { queue: 3 } }
        },
        routes: {
          lost: ["gpu/absent", "nowhere"],
          "every*": { targets: 5 },
          fine: ["gpu/small", "typed/small"]
        },
        model_aliases: { one: "nothing", two: "typed/small", three: "fine" }
      })
      assert.sameMembers(found, [
        "upstream.max_inflight",
        "upstream.base_url",
        "upstreams.Wrong Name",
        "upstreams.Wrong Name.base_url",
        "upstreams.typed.max_inflight",
        "upstreams.typed.headers.host",
        "upstreams.typed.timeouts.queue",
        "routes.lost[0]",
        "routes.lost[1]",
        "routes.every*",
        "routes.every*.targets",
        "model_aliases.one"
      ])
    }))

  it.effect("of fallbacks are listed with those of routes", () =>
    Effect.gen(function*() {
      const found = yield* fieldsOf({
        upstreams: { gpu },
        routes: { lost: ["nowhere"], fine: ["gpu/small"] },
        key_records: {
          "0123456789abcdef": {
            limits: [
              { requests: 1, window: "day", fallback: "no-model" },
              { requests: 1, window: "hour", fallback: "lost" }
            ]
          }
        }
      })
      assert.sameMembers(found, ["routes.lost[0]", "key_records.0123456789abcdef.limits[0].fallback"])
    }))

  it.effect("stand beside the unknown fields of a file, which are often their cause", () =>
    Effect.gen(function*() {
      const { base_url, ...others } = gpu
      const error = yield* Effect.flip(
        decodeConfig({ upstreams: { gpu: { ...others, base_ulr: base_url } } }, {
          source: "config.json",
          duplicates: "keep-first"
        })
      )
      assert.deepStrictEqual(error.unknown, [
        "upstreams.gpu.base_ulr is an unknown field: did you mean upstreams.gpu.base_url?"
      ])
      assert.include(error.message, error.unknown.join())
      assert.deepStrictEqual(error.faults.map(({ field }) => field), ["upstreams.gpu.base_url"])
    }))

  it.effect("of one webhook hide none of another", () =>
    Effect.gen(function*() {
      const found = yield* fieldsOf({
        webhooks: [
          { name: "Not A Name", url: "https://host", secret: "whsec_x" },
          { name: "b", url: "ftp://host", secret: "short" }
        ]
      })
      assert.includeMembers(found, ["webhooks[0].name", "webhooks[1].url", "webhooks[1].secret"])
    }))

  it.effect("that follow from another one are left out", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(
        yield* fieldsOf({
          upstreams: { gpu: { ...gpu, base_url: 5 } },
          routes: { both: ["gpu/small"] },
          model_aliases: { one: "gpu/small", two: "small", three: "both" }
        }),
        ["upstreams.gpu.base_url"]
      )
    }))
})

describe("a reference to a variable", () => {
  it.effect("is refused where none is replaced, and is a fault where its variable is not set", () =>
    Effect.gen(function*() {
      const name = "${SECRET}"
      assert.sameMembers(
        yield* fieldsOf({
          keys: [name, `sk-${name}`, "$SECRET", "sk-plain"],
          upstream: { driver: "session", base_url: "https://provider.example" },
          upstreams: {
            gpu: {
              ...gpu,
              base_url: `http://host/v1?key=${name}`,
              headers: { "x-key": name },
              proxy: `http://u:${name}@proxy`
            }
          },
          accounts: [{ email: "a@example.com", password: name }, { upstream: "gpu", token: name }],
          webhooks: [{ name: "b", url: `https://host/${name}`, secret: name }]
        }),
        [
          "keys[0]",
          "keys[1]",
          "upstreams.gpu.base_url",
          "upstreams.gpu.headers.x-key",
          "upstreams.gpu.proxy",
          "accounts[0].password",
          "accounts[1].token",
          "webhooks[0].url",
          "webhooks[0].secret"
        ]
      )
      const { faults } = yield* Effect.flip(storeUrlOf({ store: { url: `redis://:${name}@host` } }, "config.json"))
      assert.deepStrictEqual(faults.map(({ field }) => field), ["store.url"])
    }))
})
