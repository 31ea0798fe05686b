import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { ConfigStore } from "../../src/config/ConfigStore.ts"
import { ConfigTransfer } from "../../src/config/ConfigTransfer.ts"
import { decodeConfig } from "../../src/config/decodeConfig.ts"
import { isJsonObject, type RawConfig, sha256Hex } from "../../src/config/json.ts"
import { keyId } from "../../src/domain/identity.ts"
import { transferJson } from "../support/configServices.ts"

const idOf = (key: string) => keyId(key, sha256Hex)
const teamA = "8879f6a4ae35c420"

const decode = (raw: RawConfig) => decodeConfig(raw, { duplicates: "refuse" })
const recordOf = (record: RawConfig[string]) =>
  Effect.map(decode({ key_records: { [teamA]: record } }), ({ snapshot }) => snapshot.config.key_records.get(teamA))
const faultsOf = (raw: RawConfig) =>
  Effect.map(Effect.flip(decode(raw)), ({ faults }) => faults.map(({ message }) => message))
const recordFaults = (record: RawConfig[string]) => faultsOf({ key_records: { [teamA]: record } })

const nothing = {
  name: undefined,
  label: undefined,
  note: undefined,
  disabled: false,
  expires_at: undefined,
  models: undefined,
  max_inflight: undefined,
  limits: [],
  created_at: undefined
}

describe("key records", () => {
  it("are named by the first 16 hex digits of the trimmed key's SHA-256", () => {
    assert.strictEqual(idOf("sk-team-a"), teamA)
    assert.strictEqual(idOf("  sk-team-a\n"), teamA)
  })

  it.effect("are decoded; a null field counts as absent", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* recordOf({}), nothing)
      assert.deepStrictEqual(
        yield* recordOf(Object.fromEntries(Object.keys(nothing).map((field) => [field, null]))),
        nothing
      )
      assert.deepStrictEqual(
        yield* recordOf({
          name: " team a ",
          label: " sales ",
          note: "  ",
          disabled: true,
          expires_at: "2027-01-01T01:00:00+01:00",
          models: [" upstream-chat "],
          max_inflight: 4,
          limits: [{ window: "day", requests: 1000, tokens: null }, {
            window: "month",
            tokens: 10 ** 12,
            cost: null
          }, { window: "week", cost: "0.05" }],
          created_at: "2026-11-21T20:00:00Z",
          unknown: 1
        }),
        {
          name: "team a",
          label: "sales",
          note: undefined,
          disabled: true,
          expires_at: Date.UTC(2027, 0),
          models: ["upstream-chat"],
          max_inflight: 4,
          limits: [
            { window: "day", requests: 1000, tokens: undefined },
            { window: "month", requests: undefined, tokens: 10 ** 12 },
            { window: "week", requests: undefined, tokens: undefined, cost: 50_000_000n }
          ],
          created_at: "2026-11-21T20:00:00Z"
        }
      )
    }))

  it.effect("are rejected with the name of the invalid field", () =>
    Effect.gen(function*() {
      const cases: ReadonlyArray<readonly [record: RawConfig[string], fault: string]> = [
        ["text", " must be an object"],
        [{ name: 1 }, ".name must be a string"],
        [{ name: "x".repeat(101) }, ".name must have at most 100 characters"],
        [{ note: "x".repeat(1001) }, ".note must have at most 1000 characters"],
        [{ disabled: "yes" }, ".disabled must be true or false"],
        [
          { expires_at: "2027-01-01" },
          ".expires_at must be an RFC 3339 time with its zone, such as 2027-01-31T00:00:00Z"
        ],
        [{ models: [] }, ".models must have 1 to 100 model names"],
        [{ models: [""] }, ".models[0] must not be empty"],
        [{ max_inflight: 0 }, ".max_inflight must be between 1 and 200000"],
        [
          { limits: [{ window: "year", requests: 1 }] },
          ".limits[0].window must be one of minute, hour, day, week, month"
        ],
        [{ limits: [{ window: "day" }] }, ".limits[0] must limit requests, tokens or cost"],
        [{ limits: [{ window: "day", requests: 0 }] }, ".limits[0].requests must be between 1 and 1000000000000"],
        [{ limits: [{ window: "day", tokens: 1.5 }] }, ".limits[0].tokens must be an integer"],
        [{ limits: [{ window: "day", cost: 0 }] }, ".limits[0].cost must be above 0"],
        [{ limits: [{ window: "day", cost: "1e13" }] }, ".limits[0].cost must be between 0 and 1000000000000"],
        [{ limits: [{ window: "day", cost: true }] }, ".limits[0].cost must be a decimal number"],
        [
          { limits: [{ window: "day", cost: "0.0000000001" }] },
          ".limits[0].cost must be a decimal number of at least 0 with at most 9 decimals"
        ],
        [
          { limits: [{ window: "day", tokens: 1 }, { window: "day", requests: 1 }] },
          ".limits must name each window once"
        ]
      ]
      for (const [record, fault] of cases) {
        assert.deepStrictEqual(yield* recordFaults(record), [`key_records.${teamA}${fault}`])
      }
      assert.deepStrictEqual(yield* faultsOf({ key_records: [] }), ["key_records must be an object"])
      const [mistaken] = yield* faultsOf({ key_records: { "sk-secret": {} } })
      assert.notInclude(mistaken, "sk-secret")
    }))

  it.effect("count a surrogate pair as one character", () =>
    Effect.map(recordOf({ name: "😀".repeat(100) }), (record) => assert.strictEqual(record?.name, "😀".repeat(100))))

  it.effect("refuse a fallback that names no model at its place, or warn where a server may list it", () =>
    Effect.gen(function*() {
      const key_records = { [teamA]: { limits: [{ window: "day", requests: 1, strict: true, fallback: "nobody" }] } }
      const field = `key_records.${teamA}.limits[0].fallback`
      const refused = yield* Effect.flip(decode({ keys: ["k"], key_records }))
      assert.include(refused.message, `${field} must name a model or a route`)
      const upstream = { driver: "openai", base_url: "http://127.0.0.1:9/v1" }
      const { warnings } = yield* decode({ keys: ["k"], accounts: [{ token: "sk" }], upstream, key_records })
      assert.include(warnings, `${field} names no configured model and serves nothing unless the server lists it`)
    }))

  it.effect("may name unknown models, which cause a warning and match no request", () =>
    Effect.gen(function*() {
      const { warnings } = yield* decode({
        keys: ["sk-team-a"],
        model_aliases: { mine: "upstream-chat" },
        key_records: { [teamA]: { models: ["mine", "gpt-4o", "claude-opus", "nobody"] } }
      })
      assert.deepStrictEqual(warnings, [`key_records.${teamA}.models[3] names no model and allows nothing`])
    }))

  it.effect("stay the same objects in the next configuration if unchanged", () =>
    Effect.gen(function*() {
      const raw: RawConfig = { key_records: { [teamA]: { name: "a" }, [idOf("b")]: { name: "b" } } }
      const first = yield* decode(raw)
      const records = isJsonObject(raw["key_records"]) ? raw["key_records"] : {}
      const second = yield* decodeConfig({ ...raw, key_records: { ...records, [idOf("b")]: { name: "c" } } }, {
        duplicates: "refuse",
        previous: first.snapshot
      })
      const [before, after] = [first, second].map(({ snapshot }) => snapshot.config.key_records)
      assert.strictEqual(after!.get(teamA), before!.get(teamA))
      assert.strictEqual(after!.get(idOf("b"))?.name, "c")
    }))
})

describe("the settings of usage and the common limit of keys", () => {
  it.effect("have defaults and ranges", () =>
    Effect.gen(function*() {
      const { snapshot } = yield* decode({})
      assert.deepStrictEqual(snapshot.config.usage, {
        enabled: true,
        file: "usage.sqlite",
        keep_days: 400,
        session_days: 30
      })
      assert.strictEqual(snapshot.config.runtime.key_max_inflight, undefined)
      for (
        const [raw, message] of [
          [{ usage: { keep_days: 0 } }, "usage.keep_days must be between 1 and 3650"],
          [{ usage: { file: " " } }, "usage.file must not be empty"],
          [{ usage: { enabled: 1 } }, "usage.enabled must be true or false"],
          [{ runtime: { key_max_inflight: 0 } }, "runtime.key_max_inflight must be between 1 and 200000"]
        ] as const
      ) assert.deepStrictEqual(yield* faultsOf(raw), [message])
    }))
})

describe("an import of key records", () => {
  const current: RawConfig = {
    keys: ["a", "b"],
    key_records: { [idOf("a")]: { name: "A", max_inflight: 1 }, [idOf("b")]: { name: "B" } }
  }
  const importing = (incoming: RawConfig, mode: "merge" | "replace") =>
    Effect.gen(function*() {
      const store = yield* ConfigStore
      yield* (yield* ConfigTransfer).importConfig(incoming, mode)
      return yield* store.currentRaw
    }).pipe(Effect.provide(transferJson(current)))

  it.effect("replaces each imported record as a whole in merge mode", () =>
    Effect.gen(function*() {
      const raw = yield* importing(
        { keys: ["c"], key_records: { [idOf("a")]: { note: "n" }, [idOf("c")]: {} } },
        "merge"
      )
      assert.deepStrictEqual(raw["key_records"], {
        [idOf("a")]: { note: "n" },
        [idOf("b")]: { name: "B" },
        [idOf("c")]: {}
      })
    }))

  it.effect("replaces all records, and keeps those of remaining keys if it has no records", () =>
    Effect.gen(function*() {
      const replaced = yield* importing({ keys: ["a", "b"], key_records: { [idOf("b")]: { name: "new" } } }, "replace")
      assert.deepStrictEqual(replaced["key_records"], { [idOf("b")]: { name: "new" } })
      const silent = yield* importing({ keys: ["a"] }, "replace")
      assert.deepStrictEqual(silent["key_records"], { [idOf("a")]: { name: "A", max_inflight: 1 } })
    }))

  it.effect("rejects invalid records with the name of the field", () =>
    Effect.gen(function*() {
      const store = yield* ConfigStore
      const { importConfig } = yield* ConfigTransfer
      const error = yield* Effect.flip(
        importConfig(
          { keys: ["c"], key_records: { [idOf("c")]: { limits: [{ window: "x", tokens: 1 }] } } },
          "merge"
        )
      )
      assert.include(error.message, `key_records.${idOf("c")}.limits[0].window must be one of`)
      assert.deepStrictEqual(yield* store.currentRaw, current)
    }).pipe(Effect.provide(transferJson(current))))
})
