import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { accountsNamed, ambiguous, findAccount } from "../../src/config/Account.ts"
import { ConfigStore } from "../../src/config/ConfigStore.ts"
import { ConfigTransfer } from "../../src/config/ConfigTransfer.ts"
import { decodeConfig } from "../../src/config/decodeConfig.ts"
import { type RawConfig, sha256Hex } from "../../src/config/json.ts"
import { CurrentVariables, resolveReferences } from "../../src/config/references.ts"
import { tokenIdentifier } from "../../src/domain/identity.ts"
import { listedRoutes } from "../../src/domain/routeLists.ts"
import { meantRoute } from "../../src/domain/routes.ts"
import { transferJson } from "../support/configServices.ts"

const variables = (name: string) => ({ TITLE: "a gateway", PROXY: "http://user:secret@proxy:3128" })[name]

const decode = (raw: RawConfig) =>
  decodeConfig(raw, { duplicates: "refuse" }).pipe(
    Effect.map(({ snapshot }) => snapshot.config),
    Effect.provideService(CurrentVariables, variables)
  )

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

describe("what an upstream does with strict schemas", () => {
  it.effect("is one of three words for a model, and one of two for a route", () =>
    Effect.gen(function*() {
      const raw = {
        upstreams: {
          gpu: {
            driver: "openai",
            base_url: "http://127.0.0.1:9/v1",
            models: { m: { model: "m", schemas: "strict" } }
          },
          far: { driver: "openai", base_url: "http://127.0.0.1:9/v1", models: { m: "m" } }
        },
        model_facts: { "vendor/*": { schemas: true } },
        routes: { r: { targets: ["far/m"], schemas: "binding" } }
      }
      const { faults } = yield* Effect.flip(decodeConfig(raw, { duplicates: "refuse" }))
      assert.deepEqual(faults.map(({ message }) => message).sort(), [
        "model_facts.vendor/*.schemas must be one of none, advisory, binding",
        "routes.r.schemas must be one of preferred, required",
        "upstreams.gpu.models.m.schemas must be one of none, advisory, binding"
      ])
    }))
})

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
      const [own, first, second] = config.upstreams.values()
      assert.strictEqual(own?.name, "default")
      assert.deepStrictEqual(first, {
        name: "gpu",
        driver: "openai",
        enabled: true,
        base_url: "http://10.0.0.7:8000/v1",
        models: [{ id: "qwen3", model: "Qwen/Qwen3-8B", reasoning: "auto", search: false }],
        contract: undefined,
        server: undefined,
        compaction: "auto",
        bill: undefined,
        reserve: undefined,
        budgets: undefined,
        tools: "native",
        credential: "account",
        history_reasoning: "all",
        fields: "pass",
        whole_replies: "whole",
        prompt_cache: { breakpoints: "auto", mark_ttl: "5m" },
        timeouts: { connect: 10, first_byte: 30, silence: 30 },
        headers: [],
        credential_header: undefined,
        forward_headers: [],
        errors: "pass",
        choose: "rotate",
        rate_limit_headers: "auto",
        proxy: undefined,
        tls: undefined,
        max_inflight: 64,
        account_max_inflight: undefined,
        account_max_queue: undefined,
        limits: { perAccount: 64, global: 64, queue: 64 }
      })
      assert.isFalse(second?.enabled)
      assert.deepStrictEqual(second?.headers.map(({ name, value }) => [name, Redacted.value(value)]), [
        ["X-Title", "a gateway"]
      ])
      assert.strictEqual(Redacted.value(second!.proxy!), "http://user:secret@proxy:3128")
      assert.deepStrictEqual(config.routes, [
        {
          name: "qwen3",
          targets: ["gpu", "hosted"],
          wait: 0,
          also_on: [],
          spread: "order",
          schemas: "preferred",
          sticky: undefined
        },
        {
          name: "smart",
          targets: ["hosted/large", "default/upstream-reasoner"],
          wait: 60,
          also_on: ["context_length"],
          spread: "order",
          schemas: "preferred",
          sticky: undefined
        }
      ])
      const answers = (name: string) =>
        meantRoute(config.route_table, "usual", name)?.targets.map(({ model, upstream }) => `${upstream}/${model.id}`)
      assert.deepStrictEqual(answers("best"), ["hosted/large", "default/upstream-reasoner"])
      assert.deepStrictEqual(answers("big"), ["hosted/large"])
      assert.deepStrictEqual(answers("gpt-4o"), ["default/upstream-chat"])
    }))

  it.effect("without them, names stand for the models of the default upstream", () =>
    Effect.gen(function*() {
      const { route_table, upstreams } = yield* decode({})
      assert.deepStrictEqual([...upstreams.keys()], ["default"])
      assert.deepStrictEqual(meantRoute(route_table, "usual", "gpt-4o")?.targets[0]?.upstream, "default")
    }))

  it.effect("other upstreams without the group `upstream` leave no default one", () =>
    Effect.gen(function*() {
      const { route_table } = yield* decode({ upstreams: { gpu } })
      assert.deepStrictEqual(listedRoutes(route_table).map(({ id }) => id), ["qwen3"])
      assert.isUndefined(meantRoute(route_table, "usual", "gpt-4o"))
    }))

  it.effect("an alias, and the mapping of the messages style, may name a target", () =>
    Effect.gen(function*() {
      const { route_table } = yield* decode({
        upstreams: { gpu, other: gpu },
        model_aliases: { quick: "other/qwen3" },
        msgcompat_mapping: { fast: "gpu/qwen3", slow: "OTHER/Qwen3" }
      })
      const answers = (name: string, family: "usual" | "mapped" = "usual") =>
        meantRoute(route_table, family, name)?.targets.map(({ upstream }) => upstream)
      assert.deepStrictEqual(answers("quick"), ["other"])
      assert.deepStrictEqual(answers("claude-sonnet-4-5", "mapped"), ["gpu"])
      assert.deepStrictEqual(answers("claude-opus-4-5", "mapped"), ["other"])
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
        [{ upstreams: { gpu }, model_aliases: { quick: "gpu/none" } }, [
          "model_aliases.quick must name a model, a route or a target (upstream/model)"
        ]],
        [{ upstreams: { default: gpu } }, ["upstreams.default is the name of the group upstream"]],
        [{ upstreams: { Gpu: gpu } }, [
          "upstreams.Gpu must have a name of a-z, 0-9 and -, which begins with a letter and has at most 32 characters"
        ]],
        [withGpu({ driver: "embedded" }), [
          "upstreams.gpu.driver must be one of session, openai, responses, messages, generate"
        ]],
        [withGpu({ base_url: "" }), ["upstreams.gpu.base_url is required with the openai driver"]],
        ...[
          "http:\\\\u:p@host/v1",
          "http:u:p@host/v1",
          "ht\ttp://u:p@host/v1",
          "HTTP://host/v1",
          "http://Host/v1",
          "http://host:80/v1",
          "http://host/a/../v1",
          "http://host/a b",
          "http://127.1/v1",
          "http://@host/v1"
        ].map((base_url) =>
          [
            withGpu({ base_url }),
            [
              "upstreams.gpu.base_url must be in its normal form, such as https://host/v1: in lower case up to the path, and without " +
              "the usual port"
            ]
          ] as const
        ),
        ...["http://host/v1#a", "http://host/v1#"].map((base_url) =>
          [withGpu({ base_url }), ["upstreams.gpu.base_url must have no fragment"]] as const
        ),
        ...["http://***@host/v1", "http://host/v1?key=***", "http://host/v1?a=1&***"].map((base_url) =>
          [
            withGpu({ base_url }),
            ["upstreams.gpu.base_url must be written with its user information and its query"]
          ] as const
        ),
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
          "upstreams.gpu.headers.a refers to the environment variable MISSING, which is not set"
        ]],
        [withGpu({ proxy: "ftp://secret@host" }), [
          "upstreams.gpu.proxy must be an http, https, socks5 or socks5h address, or direct"
        ]],
        [withGpu({ forward_headers: "x-a" }), ["upstreams.gpu.forward_headers must be a list of names"]],
        [withGpu({ forward_headers: ["X-Trace", "x-team-*", "anthropic-*", "*", "a b"] }), [
          "upstreams.gpu.forward_headers[3] must be the name of a header, or the beginning of names before a *",
          "upstreams.gpu.forward_headers[4] must be the name of a header, or the beginning of names before a *"
        ]],
        ...["Authorization", "host", "x-gateway-key", "X-My-Key"].map((name) =>
          [withGpu({ credential_header: "x-my-key", prompt_cache: { key: `header ${name}` } }), [
            "upstreams.gpu.prompt_cache.key must name a header of its own: no credential, and no header of the connection, the body or the " +
            "gateway"
          ]] as const
        ),
        ...[
          "Authorization",
          "x-api-key",
          "cookie",
          "Host",
          "te",
          "content-type",
          "x-gateway-session",
          "x-gateway-*",
          "x-forwarded-for",
          "proxy-*"
        ].map((name) =>
          [withGpu({ forward_headers: [name] }), [
            "upstreams.gpu.forward_headers[0] names headers that never go to a server: credentials, cookies, and headers of the " +
            "connection, the body and the gateway"
          ]] as const
        ),
        [withGpu({ forward_headers: Array.from({ length: 33 }, (_, i) => `x-${i}`) }), [
          "upstreams.gpu.forward_headers must have at most 32 names"
        ]],
        [{ upstream: { forward_headers: ["x-a"] } }, [
          "upstream.forward_headers must be unset with the embedded driver"
        ]],
        [withGpu({ errors: "some" }), ["upstreams.gpu.errors must be one of pass, own"]],
        [withGpu({ rate_limit_headers: true }), [
          "upstreams.gpu.rate_limit_headers must be one of auto, always, never"
        ]],
        [withGpu({ tls: { ca: "x" } }), ["upstreams.gpu.tls must be unset with an http address"]],
        [{ upstreams: { gpu }, routes: { smart: { targets: [] } } }, [
          "routes.smart.targets must have 1 to 16 targets"
        ]],
        [{ upstreams: { gpu }, routes: { smart: [] } }, ["routes.smart must have 1 to 16 targets"]],
        [{ upstreams: { gpu }, routes: { qwen3: ["gpu", "GPU/Qwen3"] } }, [
          "routes.qwen3[1] is the same target twice"
        ]],
        [{ upstreams: { gpu }, routes: { smart: { targets: ["gpu/qwen3", "gpu/qwen3"] } } }, [
          "routes.smart.targets[1] is the same target twice"
        ]],
        [{ upstreams: { gpu }, routes: { smart: [{ target: "gpu/qwen3", weight: 0 }] } }, [
          "routes.smart[0].weight must be between 1 and 1000"
        ]],
        [{ upstreams: { gpu }, routes: { smart: { targets: ["gpu/qwen3", { target: "gpu/none", weight: 2 }] } } }, [
          "routes.smart.targets[1] names no model of the upstream gpu"
        ]],
        [{ upstreams: { gpu }, routes: { smart: [{ weight: 2 }] } }, ["routes.smart[0].target is required"]],
        [{ upstreams: { gpu }, routes: { smart: ["gpu/qwen3", "gpu/none"] } }, [
          "routes.smart[1] names no model of the upstream gpu"
        ]],
        [{ upstreams: { gpu }, routes: { smart: { targets: ["smart"], wait: 1 } } }, [
          "routes.smart.targets[0] must be upstream/model or an upstream of the configuration"
        ]],
        [{ upstreams: { gpu }, routes: { smart: { targets: ["gpu/qwen3"], spread: "random" } } }, [
          "routes.smart.spread must be one of order, even, weighted"
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

describe("accounts of several upstreams", () => {
  const several = {
    upstream: { driver: "session", base_url: "https://provider.example" },
    upstreams: { gpu: { ...gpu, base_url: "http://10.0.0.8/v1" }, hosted }
  }

  it.effect("are unique within their upstream, and named with it where the name alone says too little", () =>
    Effect.gen(function*() {
      const { account_table } = yield* decode({
        ...several,
        accounts: [
          { email: "a@x.org" },
          { upstream: "gpu", email: "A@x.org" },
          { upstream: "gpu", mobile: "13800138000", token: "t" },
          { upstream: "hosted", mobile: "+86 138 0013 8000", token: "t", proxy: "socks5://${TITLE}@proxy" }
        ]
      })
      const [first, second, third, fourth] = account_table.accounts
      const keys = account_table.accounts.map(({ identity }) => identity[0])
      assert.deepStrictEqual(keys, ["a@x.org", "gpu/a@x.org", "gpu/+8613800138000", "hosted/+8613800138000"])
      assert.deepStrictEqual([first?.name, second?.name], ["a@x.org", "gpu/A@x.org"])
      assert.strictEqual(findAccount(account_table, "a@x.org"), first)
      assert.strictEqual(findAccount(account_table, "default/a@x.org"), first)
      assert.strictEqual(findAccount(account_table, "gpu/A@X.org"), second)
      assert.strictEqual(findAccount(account_table, "gpu/+86 13800138000"), third)
      assert.isUndefined(findAccount(account_table, "hosted/a@x.org"))
      assert.isUndefined(findAccount(account_table, "13800138000"))
      const both = accountsNamed(account_table, "13800138000")
      assert.deepStrictEqual(both, [third!, fourth!])
      assert.strictEqual(
        ambiguous(both),
        "names accounts of several upstreams: use gpu/13800138000 or hosted/+86 138 0013 8000"
      )
      assert.strictEqual(Redacted.value(fourth!.proxy!), "socks5://a gateway@proxy")
    }))

  it.effect("take their tokens from the environment, and keep the name that the reference has", () =>
    Effect.gen(function*() {
      const raw = { ...several, accounts: [{ upstream: "hosted", token: " ${TITLE} " }] }
      const { snapshot } = yield* decodeConfig(raw, { duplicates: "refuse" }).pipe(
        Effect.provideService(CurrentVariables, variables)
      )
      const [account] = snapshot.config.accounts
      assert.strictEqual(Redacted.value(account!.token!), "a gateway")
      assert.strictEqual(account?.identity[0], `hosted/${tokenIdentifier("${TITLE}", sha256Hex)}`)
      assert.deepStrictEqual(snapshot.raw["accounts"], raw.accounts)
    }))

  it.effect("faults name their place", () =>
    Effect.gen(function*() {
      const twice = [{ upstream: "gpu", token: "t" }, { upstream: "gpu", token: "t" }]
      const hosted = (...tokens: ReadonlyArray<string>) => tokens.map((token) => ({ upstream: "hosted", token }))
      const cases: ReadonlyArray<readonly [RawConfig, ReadonlyArray<string>]> = [
        [{ ...several, accounts: twice }, ["accounts[1] is the same account as accounts[0]"]],
        // The variable has the token of the other account.
        [{ ...several, accounts: hosted("a gateway", "${TITLE}") }, ["accounts[1] is the same account as accounts[0]"]],
        [{ ...several, accounts: hosted("${TITLE}", " ${TITLE} ") }, [
          "accounts[1] is the same account as accounts[0]"
        ]],
        [{ ...several, accounts: [{ email: "a" }, { upstream: "other", token: "t" }] }, [
          "accounts[1].upstream must be the name of a configured upstream"
        ]],
        [{ upstreams: { gpu }, accounts: [{ token: "t" }] }, [
          "accounts[0].upstream is required: the configuration has no upstream of the name default"
        ]],
        [{ ...several, accounts: [{ upstream: 1, token: "t" }] }, ["accounts[0].upstream must be a string"]],
        [{ ...several, accounts: [{ token: "${MISSING}" }] }, [
          "accounts[0].token refers to the environment variable MISSING, which is not set"
        ]],
        [{ ...several, accounts: [{ email: "a", proxy: "ftp://secret" }] }, [
          "accounts[0].proxy must be an http, https, socks5 or socks5h address, or direct"
        ]],
        [{ ...withGpu({ headers: { Authorization: "x", "x-api-key": "y" } }), accounts: twice.slice(1) }, [
          "upstreams.gpu.headers.Authorization must be unset: the upstream's accounts have credentials",
          "upstreams.gpu.headers.x-api-key must be unset: the upstream's accounts have credentials"
        ]],
        [{ ...withGpu({ headers: { "API-Key": "x" }, credential_header: "api-key" }), accounts: twice.slice(1) }, [
          "upstreams.gpu.headers.API-Key must be unset: the upstream's accounts have credentials"
        ]],
        ...["host", "Proxy-Authorization", "content-type", "Anthropic-Version"].map((
          credential_header
        ): readonly [RawConfig, ReadonlyArray<string>] => [withGpu({ credential_header }), [
          "upstreams.gpu.credential_header is a header that the gateway sets itself"
        ]]),
        [withGpu({ credential_header: "a b" }), ["upstreams.gpu.credential_header must have the name of a header"]],
        [{ upstream: { credential_header: "api-key" } }, [
          "upstream.credential_header must be unset with the embedded driver"
        ]],
        [{ upstreams: { gpu }, auth: { direct_tokens: true } }, [
          "auth.direct_tokens must be false without the default upstream (the group upstream), to which such tokens go"
        ]]
      ]
      for (const [raw, expected] of cases) assert.deepStrictEqual(yield* faults(raw), expected)
      yield* decode(withGpu({ headers: { Authorization: "x" } }))
    }))

  it.effect("an account whose upstream is gone is a fault in an unchanged list too", () =>
    Effect.gen(function*() {
      const raw = { ...several, accounts: [{ upstream: "hosted", token: "t" }] }
      const { snapshot } = yield* decodeConfig(raw, { duplicates: "refuse" })
      const { hosted: _hosted, ...upstreams } = raw.upstreams
      const error = yield* Effect.flip(
        decodeConfig({ ...raw, upstreams }, { duplicates: "refuse", previous: snapshot })
      )
      assert.deepStrictEqual(error.faults.map(({ field }) => field), ["accounts[0].upstream"])
    }))
})

describe("limits of several upstreams", () => {
  const limits = (raw: RawConfig) =>
    Effect.map(decode(raw), ({ runtime, upstreams }) => ({
      pools: Object.fromEntries(
        Array.from(upstreams, ([name, { limits }]) => [name, [limits.perAccount, limits.global, limits.queue]])
      ),
      sum: [runtime.recommended_concurrency, runtime.global_max_inflight, runtime.account_max_queue]
    }))
  const tokens = (upstream: string, count: number) =>
    Array.from({ length: count }, (_, index) => ({ upstream, token: `${upstream}-${index}` }))
  const session = { driver: "session", base_url: "https://provider.example" }

  it.effect("follow from the accounts of each, and the sum counts enabled ones", () =>
    Effect.gen(function*() {
      const accounts = [{ email: "a" }, { email: "b", disabled: true }, ...tokens("hosted", 3)]
      const raw = { upstream: session, upstreams: { gpu, hosted }, accounts }
      assert.deepStrictEqual(yield* limits(raw), {
        pools: { default: [2, 2, 2], gpu: [8, 8, 8], hosted: [2, 6, 6] },
        sum: [16, 16, 16]
      })
      const runtime = { account_max_inflight: 5, account_max_queue: 40, global_max_inflight: 10 }
      assert.deepStrictEqual(yield* limits({ ...raw, runtime, auth: { direct_tokens: false } }), {
        pools: { default: [5, 5, 40], gpu: [8, 8, 40], hosted: [5, 15, 40] },
        sum: [28, 10, 40]
      })
      const own = { max_inflight: 4, account_max_inflight: 3, account_max_queue: 0 }
      const upstreams = { gpu: { ...gpu, enabled: false }, hosted: { ...hosted, ...own } }
      assert.deepStrictEqual(yield* limits({ ...raw, upstreams }), {
        pools: { default: [2, 2, 2], gpu: [8, 8, 8], hosted: [3, 4, 0] },
        sum: [11, 6, 11]
      })
    }))

  it.effect("a keyless upstream serves as many as its account may, else as it may, else 8", () =>
    Effect.gen(function*() {
      const of = (fields: RawConfig) => Effect.map(limits(withGpu(fields)), ({ pools }) => pools["gpu"])
      assert.deepStrictEqual(yield* of({}), [8, 8, 8])
      assert.deepStrictEqual(yield* of({ max_inflight: 64 }), [64, 64, 64])
      assert.deepStrictEqual(yield* of({ account_max_inflight: 16, max_inflight: 12 }), [16, 12, 16])
    }))

  it.effect("those of `upstream` alone equal those of the whole", () =>
    Effect.gen(function*() {
      const { pools, sum } = yield* limits({ upstream: session, runtime: { global_max_inflight: 9 } })
      assert.deepStrictEqual(pools, { default: [2, 9, 1] })
      assert.deepStrictEqual(sum, [0, 9, 1])
      const limited = yield* limits({ upstream: { ...session, max_inflight: 3 }, accounts: [{ email: "a" }] })
      assert.deepStrictEqual(limited, { pools: { default: [2, 3, 2] }, sum: [2, 3, 2] })
    }))

  it.effect("an upstream whose content is unchanged keeps its identity", () =>
    Effect.gen(function*() {
      const raw = { upstream: session, upstreams: { gpu, hosted }, accounts: tokens("hosted", 1) }
      const { snapshot } = yield* decodeConfig(raw, { duplicates: "refuse" })
      const changed = { ...raw, upstreams: { gpu: { ...gpu, enabled: false }, hosted } }
      const next = (yield* decodeConfig(changed, { duplicates: "refuse", previous: snapshot })).snapshot.config
      const kept = [...next.upstreams].flatMap(([name, one]) =>
        one === snapshot.config.upstreams.get(name) ? [name] : []
      )
      assert.deepStrictEqual(kept, ["default", "hosted"])
    }))

  it.effect("the group `upstream` has the other fields, and a model says that it takes no pictures", () =>
    Effect.gen(function*() {
      const upstream = {
        ...session,
        enabled: false,
        headers: { a: "b" },
        proxy: "direct",
        tls: { server_name: "other" },
        models: { text: { model: "t", images: false } }
      }
      const config = yield* decode({ upstream, upstreams: { gpu } })
      const [own] = config.upstreams.values()
      assert.deepStrictEqual([own?.enabled, own?.headers[0]?.name, own?.tls?.serverName], [false, "a", "other"])
      assert.strictEqual(Redacted.value(own!.proxy!), "direct")
      assert.isFalse(own?.models[0]?.images)
      assert.isFalse(meantRoute(config.route_table, "usual", "text")?.targets[0]?.enabled)
      assert.isUndefined((yield* decode({ upstreams: { gpu } })).auth.direct_upstream)
      assert.isTrue((yield* decode({ runtime: { sticky: true } })).runtime.sticky)
    }))
})

describe("references to the environment", () => {
  it.effect("stay as they are written in the configuration and its export", () =>
    Effect.gen(function*() {
      const store = yield* ConfigStore
      yield* store.update((raw) => Effect.succeed({ ...raw, keys: ["k"] }))
      const { json } = yield* (yield* ConfigTransfer).exportConfig
      const [, named] = store.now().upstreams.values()
      assert.strictEqual(Redacted.value(named!.headers[0]!.value), "a gateway")
      assert.strictEqual(Redacted.value(store.now().accounts[0]!.token!), "a gateway")
      for (const text of [JSON.stringify(yield* store.currentRaw), json]) {
        assert.include(text, "${TITLE}")
        assert.include(text, "${PROXY}")
        assert.notInclude(text, "a gateway")
        assert.notInclude(text, "secret")
      }
    }).pipe(
      Effect.provide(transferJson({
        upstream: { driver: "embedded" },
        upstreams: { hosted: { ...hosted, headers: { "X-Title": "${TITLE}" }, proxy: "${PROXY}" } },
        accounts: [{ upstream: "hosted", token: "${TITLE}" }]
      })),
      Effect.provideService(CurrentVariables, variables)
    ))

  it("are replaced by the values of variables, once", () => {
    const values = (name: string) => ({ KEY: "k", NESTED: "${KEY}", EMPTY: "" })[name]
    const resolve = (text: string) => resolveReferences(text, values)
    assert.deepStrictEqual(resolve("a ${KEY} b ${KEY}"), { value: "a k b k" })
    assert.deepStrictEqual(resolve("${NESTED}${EMPTY}"), { value: "${KEY}" })
    assert.deepStrictEqual(resolve("$${KEY} costs $1 {x}"), { value: "${KEY} costs $1 {x}" })
    assert.deepStrictEqual(resolve("${OTHER}"), { missing: "OTHER" })
    assert.deepStrictEqual(resolve("${}"), { missing: "" })
    for (const name of ["GATEWAY_ADMIN_KEY", "gateway_store_key", "HOST_TOKEN", "OTEL_EXPORTER_OTLP_HEADERS", "PORT"]) {
      assert.deepStrictEqual(resolveReferences(`a \${${name}}`, () => "secret"), { refused: name })
    }
  })
})
