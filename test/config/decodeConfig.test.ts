import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { findAccount } from "../../src/config/Account.ts"
import { decodeConfig } from "../../src/config/decodeConfig.ts"
import type { RawConfig } from "../../src/config/json.ts"
import type { PricedEntry } from "../../src/domain/prices.ts"
import { listedRoutes } from "../../src/domain/routeLists.ts"

const decode = (raw: RawConfig) =>
  Effect.map(decodeConfig(raw, { duplicates: "refuse" }), ({ snapshot }) => snapshot.config)

const faults = (raw: RawConfig) =>
  Effect.map(Effect.flip(decode(raw)), (error) => error.faults.map((fault) => fault.message))

/** A configuration with one field set; the path is that of a fault. */
const withField = (field: string, value: RawConfig[string]): RawConfig =>
  field.split(".").reduceRight<RawConfig[string]>((inner, name) => ({ [name]: inner }), value) as RawConfig

const ranges: ReadonlyArray<readonly [field: string, minimum: number, maximum: number]> = [
  ["admin.jwt_expire_hours", 1, 720],
  ["runtime.account_max_inflight", 1, 256],
  ["runtime.account_max_queue", 0, 200_000],
  ["runtime.global_max_inflight", 1, 200_000],
  ["runtime.token_refresh_interval_hours", 1, 720],
  ["responses.store_ttl_seconds", 30, 86_400],
  ["upstream.max_inflight", 1, 200_000],
  ["upstream.account_max_inflight", 1, 256],
  ["upstream.account_max_queue", 0, 200_000],
  ["captures.limit", 1, 50],
  ["captures.max_body_bytes", 1, 67_108_864]
]

const seconds: ReadonlyArray<readonly [field: string, minimum: number]> = [
  ["upstream.timeouts.connect", 0.01],
  ["upstream.timeouts.first_byte", 0.01],
  ["upstream.timeouts.silence", 0.01],
  ["upstream.timeouts.queue", 0],
  ["upstream.timeouts.client", 0.01],
  ["upstream.timeouts.drain", 0],
  ["drain.notice", 0],
  ["upstream.timeouts.attempts", 0.01]
]

const flags = [
  "auth.hash_keys",
  "admin.locked",
  "compat.wide_input_strict_output",
  "compat.strip_reference_markers",
  "compat.family_models",
  "upstream.enabled",
  "server.websockets",
  "auto_delete.sessions",
  "captures.enabled",
  "auth.direct_tokens",
  "auth.public_models",
  "metrics.public",
  "telemetry.capture_content",
  "telemetry.propagate"
]

const texts = [
  "embeddings.provider",
  "samples.dir",
  "admin.password_hash",
  "upstream.base_url",
  "upstream.credential_header",
  "upstream.proxy",
  "upstream.tls.ca",
  "upstream.headers.any",
  "msgcompat_mapping.fast",
  "msgcompat_mapping.slow",
  "model_aliases.any",
  "host.token",
  "clients.codex_instructions",
  "host.project_id"
]

const groups = [
  "msgcompat_mapping",
  "model_aliases",
  "admin",
  "runtime",
  "compat",
  "responses",
  "embeddings",
  "auto_delete",
  "upstream",
  "upstream.models",
  "upstream.headers",
  "upstream.tls",
  "upstream.timeouts",
  "captures",
  "auth",
  "server",
  "drain",
  "privacy",
  "metrics",
  "telemetry",
  "samples",
  "clients",
  "host"
]

describe("decodeConfig", () => {
  it.effect("fills in every default", () =>
    Effect.gen(function*() {
      const config = yield* decode({})
      assert.deepStrictEqual(config.msgcompat_mapping, { fast: "upstream-chat", slow: "upstream-reasoner" })
      assert.strictEqual(config.admin.locked, false)
      assert.strictEqual(config.admin.jwt_expire_hours, 24)
      assert.strictEqual(config.admin.password_hash, undefined)
      assert.strictEqual(config.runtime.account_max_inflight, 2)
      assert.strictEqual(config.runtime.token_refresh_interval_hours, 6)
      assert.strictEqual(config.runtime.sticky, "auto")
      assert.deepStrictEqual(config.compat, {
        wide_input_strict_output: true,
        strip_reference_markers: true,
        family_models: true
      })
      assert.deepStrictEqual(config.responses, { store_ttl_seconds: 900 })
      assert.deepStrictEqual(config.embeddings, { provider: "" })
      assert.deepStrictEqual(config.auto_delete, { mode: "none" })
      assert.deepStrictEqual([...config.upstreams], [["default", {
        name: "default",
        driver: "embedded",
        credential: "account",
        server: undefined,
        base_url: "",
        models: [],
        tools: "prompt",
        history_reasoning: "all",
        fields: "pass",
        whole_replies: "whole",
        enabled: true,
        timeouts: { connect: 10, first_byte: 30, silence: 120 },
        headers: [],
        credential_header: undefined,
        forward_headers: [],
        errors: "pass",
        choose: "rotate",
        rate_limit_headers: "auto",
        prompt_cache: { breakpoints: "auto", mark_ttl: "5m" },
        proxy: undefined,
        tls: undefined,
        max_inflight: undefined,
        account_max_inflight: undefined,
        account_max_queue: undefined,
        bill: undefined,
        budgets: undefined,
        compaction: "auto",
        contract: undefined,
        reserve: undefined,
        limits: { perAccount: 2, global: 2, queue: 2 }
      }]])
      assert.deepStrictEqual(config.request_timeouts, { queue: 60, client: 120, drain: 120, attempts: 120 })
      assert.deepStrictEqual(config.drain, {})
      assert.deepStrictEqual(config.captures, { enabled: true, limit: 20, max_body_bytes: 5 * 1024 * 1024 })
      assert.deepStrictEqual(config.auth, {
        direct_upstream: "default",
        hash_keys: false,
        public_models: true,
        direct_max_inflight: 1,
        removed_keys: []
      })
      assert.deepStrictEqual(config.server, { trusted_proxies: [], websockets: true })
      assert.deepStrictEqual(config.privacy, { client_address: "prefix", sessions: "full" })
      assert.deepStrictEqual(config.metrics, { public: false })
      assert.deepStrictEqual(config.telemetry, { capture_content: false, propagate: false })
      assert.deepStrictEqual(config.samples, { dir: "tests/raw_stream_samples" })
    }))

  it.effect("accepts the bounds of every range and names the range for values beyond", () =>
    Effect.gen(function*() {
      for (const [field, minimum, maximum] of ranges) {
        yield* decode(withField(field, minimum))
        yield* decode(withField(field, maximum))
        const message = `${field} must be between ${minimum} and ${maximum}`
        assert.deepStrictEqual(yield* faults(withField(field, minimum - 1)), [message])
        assert.deepStrictEqual(yield* faults(withField(field, maximum + 1)), [message])
      }
      for (const [field, minimum] of seconds) {
        yield* decode(withField(field, 0.5))
        assert.deepStrictEqual(yield* faults(withField(field, -1)), [`${field} must be between ${minimum} and 86400`])
      }
    }))

  it.effect("rejects a wrong type in every field by name", () =>
    Effect.gen(function*() {
      const integers = ranges.map(([field]) => field)
      for (const field of integers) {
        for (const value of ["1", 1.5, null, true, [1], {}]) {
          assert.deepStrictEqual(yield* faults(withField(field, value)), [`${field} must be an integer`])
        }
      }
      for (const [field] of seconds) {
        for (const value of ["1", null, true, [1], {}]) {
          assert.deepStrictEqual(yield* faults(withField(field, value)), [`${field} must be a number`])
        }
      }
      for (const field of flags) {
        for (const value of ["true", 1, null, [], {}]) {
          assert.deepStrictEqual(yield* faults(withField(field, value)), [`${field} must be true or false`])
        }
      }
      for (const field of texts) {
        for (const value of [1, null, true, ["x"], {}]) {
          assert.include(yield* faults(withField(field, value)), `${field} must be a string`)
        }
      }
      for (const field of groups) {
        for (const value of [1, null, true, ["x"], "x"]) {
          assert.deepStrictEqual(yield* faults(withField(field, value)), [`${field} must be an object`])
        }
      }
      for (const field of ["keys", "accounts"]) {
        for (const value of [1, null, true, {}, "x"]) {
          assert.deepStrictEqual(yield* faults({ [field]: value }), [`${field} must be an array`])
        }
      }
      assert.deepStrictEqual(yield* faults({ auto_delete: { mode: "some" } }), [
        "auto_delete.mode must be one of none, single, all"
      ])
      assert.deepStrictEqual(yield* faults({ upstream: { driver: "other", tools: 1 } }), [
        "upstream.driver must be one of embedded, session, openai, responses, messages, generate",
        "upstream.tools must be one of native, functions, prompt"
      ])
      assert.deepStrictEqual(yield* faults({ privacy: { client_address: "some" } }), [
        "privacy.client_address must be one of full, prefix, none"
      ])
      const proxies = ["10.0.0.0/8", "10.0.0.0/33", "proxy.example", "::1", 7]
      assert.deepStrictEqual(yield* faults({ server: { trusted_proxies: proxies } }), [
        "server.trusted_proxies[1] must be an IP address or a CIDR range, such as 10.0.0.0/8",
        "server.trusted_proxies[2] must be an IP address or a CIDR range, such as 10.0.0.0/8",
        "server.trusted_proxies[4] must be a string"
      ])
      assert.deepStrictEqual(yield* faults({ server: { trusted_proxies: "10.0.0.0/8" } }), [
        "server.trusted_proxies must be an array of IP addresses and CIDR ranges"
      ])
      assert.deepStrictEqual(yield* faults({ keys: ["ok", 1, " "] }), [
        "keys[1] must be a string",
        "keys[2] must not be empty"
      ])
      assert.deepStrictEqual(
        yield* faults({ accounts: [{ email: 1, token: 2 }, 3, { password: "p" }, { mobile: "x" }] }),
        [
          "accounts[0].email must be a string",
          "accounts[0].token must be a string",
          "accounts[1] must be an object",
          "accounts[2] must have an email, a mobile, a token or a credential",
          "accounts[3] must have an email, a mobile, a token or a credential"
        ]
      )
      const [first, ...others] = yield* faults({ upstream: { models: { a: 1, b: { model: 2 }, c: "" } } })
      assert.deepStrictEqual(others, ["upstream.models.b.model must be a string"])
      assert.match(
        first ?? "",
        /^upstream\.models\.a must be a model's name or an object with the fields model, .*\bimages\b.*\bapi\b/
      )
    }))

  it.effect("reports all faults together with their places and without values", () =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(decode({
        keys: [7],
        accounts: [{ password: "hunter2" }],
        runtime: { account_max_inflight: 0 },
        model_aliases: { gpt: "hunter3" },
        msgcompat_mapping: { fast: "hunter4" },
        upstream: { driver: "session" },
        captures: { limit: 51 }
      }))
      assert.deepStrictEqual(error.faults.map((fault) => fault.field), [
        "keys[0]",
        "accounts[0]",
        "runtime.account_max_inflight",
        "captures.limit",
        "upstream.base_url",
        "model_aliases.gpt",
        "msgcompat_mapping.fast"
      ])
      assert.notInclude(error.message, "hunter")
    }))

  it.effect("names the faulty field of a token for the admin API, without its hash", () =>
    Effect.gen(function*() {
      const token = { id: "a", name: "ci", role: "viewer", hash: "0".repeat(64) }
      const of = (...tokens: ReadonlyArray<unknown>) => faults({ admin: { tokens } as RawConfig })
      assert.deepStrictEqual(
        yield* of({ id: "a b", name: " ", role: "owner", hash: "hunter2", expires_at: "tomorrow" }),
        [
          "admin.tokens[0].id must be 1 to 64 letters, digits, hyphens and underscores",
          "admin.tokens[0].name must not be empty",
          "admin.tokens[0].role must be one of admin, viewer",
          "admin.tokens[0].hash must be the token's SHA-256 as 64 hex digits",
          "admin.tokens[0].expires_at must be an RFC 3339 time with its zone, such as 2027-01-31T00:00:00Z"
        ]
      )
      assert.deepStrictEqual(yield* of(token, { ...token, hash: "1".repeat(64) }), [
        "admin.tokens must have each id once"
      ])
      assert.deepStrictEqual(yield* of(token, { ...token, id: "b" }), ["admin.tokens must have each hash once"])
      assert.deepStrictEqual(
        yield* of(
          ...Array.from({ length: 101 }, (_, i) => ({ ...token, id: `t${i}`, hash: String(i).padStart(64, "0") }))
        ),
        ["admin.tokens must have at most 100 tokens"]
      )
      assert.deepStrictEqual(yield* faults({ admin: { tokens: "mga-hunter2" } }), [
        "admin.tokens must be an array of tokens"
      ])
    }))

  it.effect("lists a hundred faults at most, however many there are", () =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(decode({ keys: Array.from({ length: 5_000 }, () => 1) }))
      assert.lengthOf(error.faults, 100)
      assert.match(error.message, /other fields are wrong too$/)
    }))

  it.effect("derives the unset queue and global limits from the accounts", () =>
    Effect.gen(function*() {
      const accounts = [{ email: "a" }, { email: "b" }, { email: "c" }]
      const session = { driver: "session", base_url: "http://127.0.0.1" }
      const follows = (yield* decode({ accounts, runtime: { account_max_inflight: 5 } })).runtime
      assert.strictEqual(follows.recommended_concurrency, 15)
      assert.strictEqual(follows.account_max_queue, 15)
      assert.strictEqual(follows.global_max_inflight, 15)
      assert.deepStrictEqual(follows.configured, { account_max_queue: undefined, global_max_inflight: undefined })
      const set = (yield* decode({ accounts, runtime: { account_max_queue: 0, global_max_inflight: 9 } })).runtime
      assert.strictEqual(set.account_max_queue, 0)
      assert.strictEqual(set.global_max_inflight, 9)
      const none = (yield* decode({ upstream: session })).runtime
      assert.strictEqual(none.recommended_concurrency, 0)
      assert.strictEqual(none.account_max_queue, 1)
      assert.strictEqual(none.global_max_inflight, 1)
      const own = (yield* decode({})).runtime
      assert.strictEqual(own.recommended_concurrency, 2)
    }))

  it.effect("allows more concurrency for a server without API keys, unless the limit is set", () =>
    Effect.gen(function*() {
      const upstream = { driver: "openai", base_url: "http://127.0.0.1:8000/v1" }
      for (const accounts of [[], [{ token: "none" }]]) {
        const { runtime } = yield* decode({ upstream, accounts })
        assert.deepStrictEqual(
          [runtime.account_max_inflight, runtime.global_max_inflight, runtime.account_max_queue],
          [8, 8, 8]
        )
        const set = (yield* decode({ upstream, accounts, runtime: { account_max_inflight: 64 } })).runtime
        assert.deepStrictEqual([set.account_max_inflight, set.global_max_inflight], [64, 64])
      }
      for (const accounts of [[{ token: "sk-1" }], [{ token: "none" }, { token: "sk-1" }]]) {
        assert.strictEqual((yield* decode({ upstream, accounts })).runtime.account_max_inflight, 2)
      }
    }))

  it.effect("turns direct tokens off with the openai driver unless they are set", () =>
    Effect.gen(function*() {
      const upstream = { driver: "openai", base_url: "http://127.0.0.1/v1/" }
      const config = yield* decode({ upstream })
      const own = config.upstreams.get("default")
      assert.isUndefined(config.auth.direct_upstream)
      assert.strictEqual(own?.tools, "native")
      for (const base_url of ["http://127.0.0.1/v1", "http://127.0.0.1/v1/chat/completions/"]) {
        const { upstreams } = yield* decode({ upstream: { driver: "openai", base_url } })
        assert.strictEqual(upstreams.get("default")?.base_url, own?.base_url)
      }
      assert.strictEqual(own?.base_url, "http://127.0.0.1/v1")
      const { auth } = yield* decode({ upstream, auth: { direct_tokens: true } })
      assert.strictEqual(auth.direct_upstream, "default")
      const { upstreams } = yield* decode({ upstream: { ...upstream, tools: "prompt" } })
      assert.strictEqual(upstreams.get("default")?.tools, "prompt")
    }))

  it.effect("requires an http address for drivers that need one", () =>
    Effect.gen(function*() {
      for (const driver of ["session", "openai"]) {
        assert.deepStrictEqual(yield* faults({ upstream: { driver } }), [
          `upstream.base_url is required with the ${driver} driver`
        ])
        for (const base_url of ["localhost", "ftp://x", "//x"]) {
          assert.deepStrictEqual(yield* faults({ upstream: { driver, base_url } }), [
            "upstream.base_url must be an http or https address"
          ])
        }
      }
    }))

  it.effect("refuses another format alone, whatever else it has", () =>
    Effect.gen(function*() {
      yield* decode({ format: 1 })
      for (const format of [0, 2, "1", null]) {
        assert.deepStrictEqual(yield* faults({ format, keys: 5 }), [
          "format must be 1 in this version: start the version that wrote this configuration"
        ])
      }
    }))

  it.effect("adds the configured upstream models to the native ones", () =>
    Effect.gen(function*() {
      const config = yield* decode({
        upstream: {
          models: {
            "upstream-reasoner": "deep",
            "Local-Model": { model: "qwen3", reasoning: true },
            open: "qwen3",
            "upstream-chat": { model: "small", search: true }
          }
        },
        model_aliases: { " Fast One ": "local-model", other: "UPSTREAM-CHAT" },
        msgcompat_mapping: { slow: "local-model" }
      })
      assert.deepStrictEqual(config.upstreams.get("default")?.models, [
        { id: "upstream-reasoner", model: "deep", reasoning: true, search: false },
        { id: "Local-Model", model: "qwen3", reasoning: true, search: false },
        { id: "open", model: "qwen3", reasoning: "auto", search: false },
        { id: "upstream-chat", model: "small", reasoning: false, search: true }
      ])
      assert.deepStrictEqual(
        listedRoutes(config.route_table).map(({ id, reasoning, search }) => ({ id, reasoning, search })).slice(4),
        [
          { id: "Local-Model", reasoning: true, search: false },
          { id: "open", reasoning: "auto", search: false }
        ]
      )
      assert.strictEqual(config.route_table.config.aliases.get("fast one"), "local-model")
      assert.deepStrictEqual(config.msgcompat_mapping, { fast: "upstream-chat", slow: "local-model" })
    }))

  it.effect("rejects aliases and mappings to unknown models, and empty or repeated aliases", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(
        yield* faults({ model_aliases: { a: "gpt-4", b: "c", c: "upstream-chat", "": "upstream-chat" } }),
        [
          "model_aliases.a must name a model, a route or a target (upstream/model)",
          "model_aliases.b must name a model, a route or a target (upstream/model)",
          "model_aliases must not have an empty name"
        ]
      )
      assert.deepStrictEqual(yield* faults({ model_aliases: { A: "upstream-chat", "a ": "upstream-chat" } }), [
        "model_aliases.a  is named twice, but for case and blanks"
      ])
      assert.deepStrictEqual(yield* faults({ msgcompat_model_mapping: { slow: "x" } }), [
        "msgcompat_mapping.slow must name a model, a route or a target (upstream/model)"
      ])
    }))

  it.effect("reads prices exactly, as numbers or texts, and names the field of a wrong one", () =>
    Effect.gen(function*() {
      const { prices, currency } = yield* decode({
        currency: "usd",
        prices: {
          " GPT-4o ": { input: 0.15, cached_input: "0.075", output: 1e-9, per_request: 1 },
          "gpu/*": { input: "1.5e2", per_tool_call: { web_search: "0.01" } },
          dated: [{ input: 2 }, {
            from: "2027-01-01",
            output: 3,
            above: [{ tokens: 100, input: 1 }, { tokens: 200, input: 2 }],
            tiers: { Flex: { input: 0 } },
            factors: { speed: { fast: 6 } }
          }]
        }
      })
      assert.strictEqual(currency, "USD")
      const unitsAt = (entry: PricedEntry | undefined, time = 0) =>
        Object.fromEntries(entry?.at(time)?.price.units ?? [])
      assert.deepStrictEqual([...prices.exact.keys()], ["gpt-4o", "dated"])
      assert.deepStrictEqual(unitsAt(prices.exact.get("gpt-4o")), {
        input: 150_000_000n,
        cached_input: 75_000_000n,
        output: 1n,
        per_request: 1_000_000_000n
      })
      assert.deepStrictEqual(prices.prefixes.map(([prefix, entry]) => [prefix, unitsAt(entry)]), [
        ["gpu/", { input: 150_000_000_000n, "per_tool_call.web_search": 10_000_000n }]
      ])
      const dated = prices.exact.get("dated")
      const begun = Date.UTC(2027, 0, 1)
      assert.deepStrictEqual([unitsAt(dated, begun - 1), unitsAt(dated, begun)], [
        { input: 2_000_000_000n },
        { output: 3_000_000_000n }
      ])
      const price = dated?.at(begun)?.price
      assert.deepStrictEqual(price?.above.map(({ tokens }) => tokens), [200, 100])
      assert.deepStrictEqual(Object.fromEntries(price?.tiers.get("flex")?.units ?? []), { input: 0n })
      assert.strictEqual(price?.factors.get("speed")?.get("fast"), 6_000_000_000n)
      for (
        const [raw, message] of [
          [{ prices: 1 }, "prices must be an object"],
          [{ prices: { list: "no" } }, "prices.list must be true or false"],
          [{ prices: { a: {} } }, "prices.a must have at least one price"],
          [
            { prices: { a: { input: -1 } } },
            "prices.a.input must be a decimal number of at least 0 with at most 9 decimals"
          ],
          [
            { prices: { a: { output: 1e-10 } } },
            "prices.a.output must be a decimal number of at least 0 with at most 9 decimals"
          ],
          [{ prices: { a: { output: "1e10" } } }, "prices.a.output must be between 0 and 1000000000"],
          [
            { prices: { a: { input: 1234567.123456789 } } },
            "prices.a.input must be a text to keep more than 15 digits exactly"
          ],
          [{ prices: { a: { above: [{ input: 1 }] } } }, "prices.a.above[0].tokens is required"],
          [
            { prices: { a: { above: [{ tokens: 5, input: -1 }] } } },
            "prices.a.above[0].input must be a decimal number of at least 0 with at most 9 decimals"
          ],
          [
            { prices: { a: { above: [{ tokens: 5, input: 1 }, { tokens: 5, input: 2 }] } } },
            "prices.a.above must name each number of tokens once"
          ],
          [{ prices: { a: { tiers: { flex: {} } } } }, "prices.a.tiers.flex must have at least one price"],
          [{ prices: { a: { tiers: { flex: { output: "x" } } } } }, /^prices\.a\.tiers\.flex\.output must be/],
          [
            { prices: { a: { input: 1, factors: { speed: { fast: -1 } } } } },
            /^prices\.a\.factors\.speed\.fast must be/
          ],
          [{ prices: { a: { per_tool_call: { search: "1e-10" } } } }, /^prices\.a\.per_tool_call\.search must be/],
          [{ prices: { a: { input: 1, from: "soon" } } }, /^prices\.a\.from must be a day/],
          [{ prices: { a: [] } }, "prices.a must have 1 to 16 prices"],
          [{ prices: { a: [{ input: 1 }, { input: -1, from: "2027-01-01" }] } }, /^prices\.a\[1\]\.input must be/],
          [{ prices: { a: [{ input: 1 }, { input: 2 }] } }, "prices.a must have each beginning once"],
          [{ prices: { "a*b": { input: 1 } } }, "prices.a*b may have * at its end only"],
          [{ prices: { a: { input: 1 }, "A ": { input: 2 } } }, "prices.A  is named twice, but for case and blanks"],
          [{ prices: { "": { input: 1 } } }, "prices must not have an empty name"],
          [{ currency: "dollars" }, "currency must be a code of three letters, such as USD"],
          [{ currency: 1 }, "currency must be a string"]
        ] as ReadonlyArray<readonly [RawConfig, string | RegExp]>
      ) {
        const found = yield* faults(raw)
        assert.strictEqual(found.length, 1, found.join())
        if (typeof message === "string") assert.strictEqual(found[0], message)
        else assert.match(found[0]!, message)
      }
    }))

  it.effect("treats names of inherited object properties as ordinary names", () =>
    Effect.gen(function*() {
      const raw = JSON.parse(`{"model_aliases": {"__proto__": "upstream-chat", "constructor": "upstream-chat"},
        "upstream": {"models": {"toString": "x"}}, "__proto__": {"keys": ["polluted"]}}`)
      const config = yield* decode(raw)
      assert.deepStrictEqual([...config.model_aliases.keys()].sort(), ["__proto__", "constructor"])
      assert.deepStrictEqual(config.keys, [])
      assert.deepStrictEqual(config.upstreams.get("default")?.models.map((model) => model.id), ["toString"])
    }))

  it.effect("accepts the older names of the mapping and of session deletion", () =>
    Effect.gen(function*() {
      const config = yield* decode({
        msgcompat_model_mapping: { fast: "upstream-chat-search" },
        auto_delete: { sessions: true }
      })
      assert.deepStrictEqual(config.msgcompat_mapping, { fast: "upstream-chat-search", slow: "upstream-reasoner" })
      assert.deepStrictEqual(config.auto_delete, { mode: "all" })
      assert.deepStrictEqual((yield* decode({ auto_delete: { mode: "single", sessions: true } })).auto_delete, {
        mode: "single"
      })
      assert.deepStrictEqual((yield* decode({ auto_delete: { sessions: false } })).auto_delete, { mode: "none" })
    }))

  it.effect("finds an account by email, by any spelling of its mobile, and by its token's hash", () =>
    Effect.gen(function*() {
      const { account_table: table } = yield* decode({
        accounts: [
          { email: " a@b.c ", mobile: "13800138000", password: " p " },
          { mobile: "+86 139 0013 9000", password: "q" },
          { token: " bare-token " }
        ]
      })
      assert.deepStrictEqual(table.accounts.map((account) => account.identifier), [
        "a@b.c",
        "+86 139 0013 9000",
        "token:d300834f86e0d535"
      ])
      assert.strictEqual(findAccount(table, "A@B.C"), table.accounts[0])
      assert.strictEqual(findAccount(table, "+8613800138000"), table.accounts[0])
      assert.strictEqual(findAccount(table, "13900139000"), table.accounts[1])
      assert.strictEqual(findAccount(table, "token:d300834f86e0d535"), table.accounts[2])
      assert.strictEqual(findAccount(table, "nobody"), undefined)
      assert.strictEqual(Redacted.value(table.accounts[0]!.password!), " p ")
      assert.strictEqual(Redacted.value(table.accounts[2]!.token!), "bare-token")
      assert.notInclude(JSON.stringify(table.accounts), "bare-token\"")
    }))

  it.effect("rejects a new key in the form of a key id, and keeps an existing one with a warning", () =>
    Effect.gen(function*() {
      const raw = { keys: ["k", "0123456789abcdef"] }
      const rule = "16 hex digits, which is the form of key ids"
      assert.deepStrictEqual(yield* faults(raw), [`keys[1] must not be ${rule}`])
      const { snapshot, warnings } = yield* decodeConfig(raw, { duplicates: "keep-first" })
      assert.deepStrictEqual(warnings, [`keys[1] is ${rule}: replace it by another key`])
      assert.deepStrictEqual(snapshot.config.keys, raw.keys)
      const next = { keys: [...raw.keys, "another"] }
      const changed = yield* decodeConfig(next, { duplicates: "refuse", previous: snapshot })
      assert.deepStrictEqual(changed.snapshot.config.keys, next.keys)
    }))

  it.effect("rejects a repeated key or account, or drops it with a warning", () =>
    Effect.gen(function*() {
      const raw = {
        keys: ["k", "l", " k "],
        accounts: [{ mobile: "13800138000" }, { email: "a" }, { mobile: "+8613800138000", email: "b" }, { email: "A" }]
      }
      assert.deepStrictEqual(yield* faults(raw), [
        "keys[2] is listed twice",
        "accounts[2] is the same account as accounts[0]",
        "accounts[3] is the same account as accounts[1]"
      ])
      const { snapshot, warnings } = yield* decodeConfig(raw, { duplicates: "keep-first" })
      assert.lengthOf(warnings, 3)
      assert.deepStrictEqual(snapshot.raw, { keys: ["k", "l"], accounts: [{ mobile: "13800138000" }, { email: "a" }] })
      assert.lengthOf(snapshot.config.accounts, 2)
    }))

  it.effect("keeps the object of a group while its content is unchanged", () =>
    Effect.gen(function*() {
      const raw: RawConfig = {
        keys: ["k"],
        accounts: [{ email: "a" }],
        upstream: { driver: "session", base_url: "http://127.0.0.1", models: { m: "n" } },
        model_aliases: { x: "m" }
      }
      const { snapshot: before } = yield* decodeConfig(raw, { duplicates: "refuse" })
      const reloaded = JSON.parse(JSON.stringify({ ...raw, runtime: { account_max_inflight: 3 } }))
      const { snapshot: after } = yield* decodeConfig(reloaded, { duplicates: "refuse", previous: before })
      for (const name of ["request_timeouts", "keys", "route_table", "compat", "admin", "captures"] as const) {
        assert.strictEqual(after.config[name], before.config[name], name)
      }
      assert.notStrictEqual(after.config.runtime, before.config.runtime)
      const { snapshot: moved } = yield* decodeConfig(
        { ...raw, upstream: { driver: "session", base_url: "http://127.0.0.2" }, model_aliases: {} },
        { duplicates: "refuse", previous: before }
      )
      assert.notStrictEqual(moved.config.upstreams, before.config.upstreams)
    }))
})
