import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { decodeConfig } from "../../src/config/decodeConfig.ts"
import type { RawConfig } from "../../src/config/json.ts"
import { resolveReferences } from "../../src/config/references.ts"
import { listedRoutes, resolveRoute } from "../../src/domain/routes.ts"

const variables = (name: string) => ({ TITLE: "a gateway", PROXY: "http://user:secret@proxy:3128" })[name]

const decode = (raw: RawConfig) =>
  Effect.map(decodeConfig(raw, { duplicates: "refuse", variables }), ({ snapshot }) => snapshot.config)

const faults = (raw: RawConfig) =>
  Effect.map(Effect.flip(decode(raw)), (error) => error.faults.map((fault) => fault.message))

const gpu = { driver: "openai", base_url: "http://10.0.0.7:8000/v1/", models: { qwen3: "Qwen/Qwen3-8B" } }
const hosted = {
  driver: "openai",
  base_url: "https://hosted.example/v1",
  models: { qwen3: "qwen/qwen3-8b", large: { model: "vendor/large", reasoning: true } }
}

/** The configuration with one upstream, `gpu`, with changed fields. */
const withGpu = (changes: RawConfig): RawConfig => ({ upstreams: { gpu: { ...gpu, ...changes } } })

describe("upstreams and routes of the configuration", () => {
  it.effect("are decoded with their defaults, and say what names stand for", () =>
    Effect.gen(function*() {
      const config = yield* decode({
        upstream: { driver: "session", base_url: "https://provider.example" },
        upstreams: {
          gpu: { ...gpu, max_inflight: 64, timeouts: { silence: 30 } },
          hosted: { ...hosted, enabled: false, headers: { "X-Title": "${TITLE}" }, proxy: "${PROXY}" }
        },
        routes: {
          qwen3: ["gpu", "hosted"],
          smart: { targets: ["hosted/large", "default/upstream-reasoner"], wait: 90, also_on: ["context_length"] }
        },
        model_aliases: { best: "smart", big: "large" }
      })
      const [first, second] = config.upstreams
      assert.deepStrictEqual(first, {
        name: "gpu",
        driver: "openai",
        enabled: true,
        base_url: "http://10.0.0.7:8000/v1",
        models: [{ id: "qwen3", model: "Qwen/Qwen3-8B", reasoning: "auto", search: false }],
        tools: "native",
        history_reasoning: "all",
        fields: "pass",
        timeouts: { connect: 10, first_byte: 30, silence: 30 },
        headers: [],
        proxy: undefined,
        tls: undefined,
        max_inflight: 64,
        account_max_inflight: undefined,
        account_max_queue: undefined
      })
      assert.isFalse(second?.enabled)
      assert.deepStrictEqual(second?.headers.map(({ name, value }) => [name, Redacted.value(value)]), [
        ["X-Title", "a gateway"]
      ])
      assert.strictEqual(Redacted.value(second!.proxy!), "http://user:secret@proxy:3128")
      assert.deepStrictEqual(config.routes, [
        { name: "qwen3", targets: ["gpu", "hosted"], wait: 0, also_on: [], spread: "order", sticky: false },
        {
          name: "smart",
          targets: ["hosted/large", "default/upstream-reasoner"],
          wait: 60,
          also_on: ["context_length"],
          spread: "order",
          sticky: false
        }
      ])
      const answers = (name: string) =>
        resolveRoute(config.route_table, "chat", name)?.targets.map(({ model, upstream }) => `${upstream}/${model.id}`)
      assert.deepStrictEqual(answers("best"), ["hosted/large", "default/upstream-reasoner"])
      assert.deepStrictEqual(answers("big"), ["hosted/large"])
      assert.deepStrictEqual(answers("gpt-4o"), ["default/upstream-chat"])
    }))

  it.effect("without them, names stand for the models of the default upstream", () =>
    Effect.gen(function*() {
      const { route_table, upstreams } = yield* decode({})
      assert.deepStrictEqual(upstreams, [])
      assert.deepStrictEqual(resolveRoute(route_table, "chat", "gpt-4o")?.targets[0]?.upstream, "default")
    }))

  it.effect("other upstreams without the group `upstream` leave no default one", () =>
    Effect.gen(function*() {
      const { route_table } = yield* decode({ upstreams: { gpu } })
      assert.deepStrictEqual(listedRoutes(route_table).map(({ id }) => id), ["qwen3"])
      assert.isUndefined(resolveRoute(route_table, "chat", "gpt-4o"))
    }))

  it.effect("unchanged ones keep their identity", () =>
    Effect.gen(function*() {
      const raw = { upstreams: { gpu: { ...gpu, headers: { a: "b" } } }, routes: { smart: ["gpu/qwen3"] } }
      const { snapshot } = yield* decodeConfig(raw, { duplicates: "refuse" })
      const next = yield* decodeConfig(structuredClone(raw), { duplicates: "refuse", previous: snapshot })
      assert.strictEqual(next.snapshot.config.upstreams, snapshot.config.upstreams)
      assert.strictEqual(next.snapshot.config.routes, snapshot.config.routes)
    }))

  it.effect("faults name their place, and no secret", () =>
    Effect.gen(function*() {
      const cases: ReadonlyArray<readonly [RawConfig, ReadonlyArray<string>]> = [
        [{ upstreams: [] }, ["upstreams must be an object"]],
        [{ upstreams: { default: gpu } }, ["upstreams.default is the name of the group upstream"]],
        [{ upstreams: { Gpu: gpu } }, [
          "upstreams.Gpu must have a name of a-z, 0-9 and -, which begins with a letter and has at most 32 characters"
        ]],
        [withGpu({ driver: "embedded" }), ["upstreams.gpu.driver must be one of session, openai, messages, generate"]],
        [withGpu({ base_url: "" }), ["upstreams.gpu.base_url is required with the openai driver"]],
        [withGpu({ models: { " ": "x" } }), ["upstreams.gpu.models must not have an empty id"]],
        [withGpu({ max_inflight: 0 }), ["upstreams.gpu.max_inflight must be between 1 and 200000"]],
        [withGpu({ timeouts: { queue: 3 } }), [
          "upstreams.gpu.timeouts.queue belongs to the whole request: set it in upstream.timeouts"
        ]],
        [withGpu({ headers: { Host: "x" } }), ["upstreams.gpu.headers.Host is a header that the gateway sets itself"]],
        [withGpu({ headers: { "Proxy-Authorization": "x" } }), [
          "upstreams.gpu.headers.Proxy-Authorization is a header that the gateway sets itself"
        ]],
        [withGpu({ headers: { "a b": "x" } }), ["upstreams.gpu.headers.a b must have the name of a header"]],
        ...["a\nb", "ж"].map((value): [RawConfig, ReadonlyArray<string>] => [withGpu({ headers: { a: value } }), [
          "upstreams.gpu.headers.a must contain Latin-1 characters without line breaks"
        ]]),
        [withGpu({ headers: { a: "x".repeat(8_192) } }), ["upstreams.gpu.headers.a must have at most 8192 bytes"]],
        [withGpu({ headers: { a: "x", A: "y" } }), ["upstreams.gpu.headers.A is named twice, but for case"]],
        [withGpu({ headers: { a: "secret ${MISSING}" } }), [
          "upstreams.gpu.headers.a refers to a variable of the environment that is not set"
        ]],
        [withGpu({ proxy: "ftp://secret@host" }), [
          "upstreams.gpu.proxy must be an http, https, socks5 or socks5h address, or direct"
        ]],
        [withGpu({ tls: { ca: "x" } }), ["upstreams.gpu.tls must be unset with an http address"]],
        [{ upstreams: { gpu }, routes: { smart: { targets: [] } } }, [
          "routes.smart.targets must have 1 to 16 targets"
        ]],
        [{ upstreams: { gpu }, routes: { smart: ["gpu/qwen3", "gpu/none"] } }, [
          "routes.smart[1] names no model of the upstream gpu"
        ]],
        [{ upstreams: { gpu }, routes: { smart: { targets: ["smart"], wait: 1 } } }, [
          "routes.smart.targets[0] must be upstream/model or an upstream of the configuration"
        ]],
        [{ upstreams: { gpu }, routes: { smart: { targets: ["gpu/qwen3"], spread: "random" } } }, [
          "routes.smart.spread must be one of order, even"
        ]]
      ]
      for (const [raw, expected] of cases) assert.deepStrictEqual(yield* faults(raw), expected)
    }))

  it.effect("there are at most 64 upstreams, 1,000 routes, 16 targets of a route and 32 headers of an upstream", () =>
    Effect.gen(function*() {
      const many = <A>(count: number, value: A) =>
        Object.fromEntries(Array.from({ length: count }, (_, i) => [`n${i}`, value]))
      yield* decode({ upstreams: many(64, { ...gpu, headers: many(32, "x") }) })
      yield* decode({ upstreams: { gpu }, routes: many(1_000, ["gpu/qwen3"]) })
      assert.deepStrictEqual(yield* faults({ upstreams: many(65, gpu) }), ["upstreams must have at most 64 entries"])
      assert.deepStrictEqual(yield* faults({ upstreams: { gpu }, routes: many(1_001, ["gpu/qwen3"]) }), [
        "routes must have at most 1000 entries"
      ])
      assert.deepStrictEqual(yield* faults(withGpu({ headers: many(33, "x") })), [
        "upstreams.gpu.headers must have at most 32 headers"
      ])
    }))
})

describe("references to the environment", () => {
  it("are replaced by the values of variables, once", () => {
    const values = (name: string) => ({ KEY: "k", NESTED: "${KEY}", EMPTY: "" })[name]
    const resolve = (text: string) => resolveReferences(text, values)
    assert.deepStrictEqual(resolve("a ${KEY} b ${KEY}"), { value: "a k b k" })
    assert.deepStrictEqual(resolve("${NESTED}${EMPTY}"), { value: "${KEY}" })
    assert.deepStrictEqual(resolve("$${KEY} costs $1 {x}"), { value: "${KEY} costs $1 {x}" })
    assert.deepStrictEqual(resolve("${OTHER}"), { missing: "OTHER" })
    assert.deepStrictEqual(resolve("${}"), { missing: "" })
  })
})
