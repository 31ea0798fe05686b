/**
 * Misspelt configuration: the warnings and the schema of the file.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fc from "fast-check"
import { writeFileSync } from "node:fs"
import { ConfigStore } from "../../src/config/ConfigStore.ts"
import { configJsonSchema } from "../../src/config/document.ts"
import { isJsonObject } from "../../src/config/json.ts"
import { settingGroups } from "../../src/config/schema.ts"
import { unknownFields } from "../../src/config/unknownFields.ts"
import { protocolNames } from "../../src/contracts/drivers.ts"
import { nearest } from "../../src/domain/nearest.ts"
import { collectLogs, configFile, NodeServices, startStore } from "./support.ts"

const toldOf = (raw: unknown) => Effect.runSync(unknownFields(raw))

describe("unknown fields of the configuration", () => {
  it("are reported with their place and a suggestion", () => {
    assert.sameMembers(
      [...toldOf({
        upstrem: {},
        timeouts: { first_bite: 1 },
        runtime: { acount_max_inflight: 3 },
        upstream: { timeouts: { first_bite: 2 }, models: { mine: { model: "x", reasonig: true } } },
        accounts: [{ token: "t" }, { emial: "a@example.com" }],
        key_records: { key: { expires: "2027-01-01T00:00:00Z" } },
        entirely_of_my_own: 1
      })],
      [
        "upstrem is an unknown field: did you mean upstream?",
        "timeouts is an unknown field: did you mean upstream.timeouts?",
        "runtime.acount_max_inflight is an unknown field: did you mean runtime.account_max_inflight?",
        "upstream.timeouts.first_bite is an unknown field: did you mean upstream.timeouts.first_byte?",
        "upstream.models.mine.reasonig is an unknown field: did you mean upstream.models.mine.reasoning?",
        "accounts[1].emial is an unknown field: did you mean accounts[1].email?",
        "key_records.key.expires is an unknown field: did you mean key_records.key.expires_at?",
        "entirely_of_my_own is an unknown field"
      ]
    )
  })

  it("do not include operator-defined names or $schema", () => {
    assert.deepEqual(
      toldOf({
        $schema: "https://example.com/schema.json",
        keys: ["a"],
        model_aliases: { anything: "upstream-chat" },
        upstream: { models: { "any/thing": "x" } },
        key_records: { any: {} },
        store: { url: "redis://h" },
        host: { token: "t" }
      }),
      []
    )
  })

  it("are reported up to twenty, with long names cut", () => {
    const many = Object.fromEntries(Array.from({ length: 10_000 }, (_, n) => [`f${n}${"x".repeat(500)}`, n]))
    const found = toldOf(many)
    assert.strictEqual(found.length, 20)
    for (const sentence of found) assert.isBelow(sentence.length, 200)
  })

  it("include every setting name with one letter missing", () => {
    for (const [group, { ast }] of Object.entries(settingGroups)) {
      if (ast._tag !== "Objects") continue
      for (const { name } of ast.propertySignatures) {
        const misspelt = `${String(name).slice(0, 2)}${String(name).slice(3)}`
        assert.deepEqual(
          toldOf({ [group]: { [misspelt]: 1 } }),
          [`${group}.${misspelt} is an unknown field: did you mean ${group}.${String(name)}?`]
        )
      }
    }
  })

  it.effect("cause one warning at the start and one at an edit, and stay in the file", () =>
    Effect.gen(function*() {
      const logs: Array<string> = []
      const path = yield* configFile({ upstrem: {}, runtime: { acount_max_inflight: 3 } })
      yield* Effect.gen(function*() {
        const store = yield* startStore({ GATEWAY_CONFIG_PATH: path })
        assert.strictEqual(logs.length, 1)
        assert.match(logs[0]!, /upstrem is an unknown field: did you mean upstream\?; runtime\.acount_max_inflight/)
        // An edit is applied before a concurrent change.
        writeFileSync(path, JSON.stringify({ keys: ["by-hand"], captures: { limits: 5 } }))
        yield* store.update((raw) => Effect.succeed({ ...raw, embeddings: { provider: "builtin" } }))
        assert.strictEqual(logs.filter((line) => line.includes("captures.limits is an unknown field")).length, 1)
        assert.deepEqual((yield* store.currentRaw)["captures"], { limits: 5 })
      }).pipe(Effect.provide(collectLogs(logs)))
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)))
})

describe("an upstream address without a driver", () => {
  it.effect("is rejected, because the embedded upstream would answer instead", () =>
    Effect.gen(function*() {
      const failure = yield* Effect.flip(
        Effect.provide(ConfigStore, ConfigStore.layerJson({ upstream: { base_url: "http://127.0.0.1:8000/v1" } }))
      )
      assert.strictEqual(
        failure.message,
        `upstream.driver is required with a base_url: one of ${protocolNames.join(", ")}`
      )
    }))
})

describe("nearest, the suggestion for a misspelt word", () => {
  const word = fc.stringMatching(/^[a-z_]{4,20}$/)

  it("finds a word with any single typo", () => {
    fc.assert(fc.property(word, fc.nat(), fc.constantFrom("drop", "double", "replace", "swap"), (name, at, slip) => {
      const place = at % (name.length - 1)
      const [before, letter, next, after] = [
        name.slice(0, place),
        name[place]!,
        name[place + 1]!,
        name.slice(place + 2)
      ]
      const changed = slip === "drop"
        ? before + next + after
        : slip === "double"
        ? before + letter + letter + next + after
        : slip === "replace"
        ? `${before}#${next}${after}`
        : before + next + letter + after
      assert.deepEqual(nearest(changed, ["something-else-altogether-and-long", name]), [name])
    }))
  })

  it("returns nothing for a dissimilar word, and skips long names", () => {
    assert.deepEqual(nearest("zzzzzz", ["runtime", "upstream"]), [])
    assert.deepEqual(nearest("r".repeat(65), [`r${"r".repeat(64)}`]), [])
  })
})

describe("the JSON Schema of the configuration file", () => {
  it("names every group and field, and forbids others", () => {
    const schema = configJsonSchema()
    const at = (...path: ReadonlyArray<string>): unknown =>
      path.reduce<unknown>((found, name) => isJsonObject(found) ? found[name] : undefined, schema)
    for (const [group, { ast }] of Object.entries(settingGroups)) {
      assert.isDefined(at("properties", group), group)
      if (ast._tag !== "Objects") continue
      for (const { name } of ast.propertySignatures) {
        assert.isDefined(at("properties", group, "properties", String(name)), `${group}.${String(name)}`)
      }
    }
    assert.isDefined(at("properties", "$schema"))
    assert.strictEqual(at("additionalProperties"), false)
    assert.strictEqual(at("properties", "runtime", "additionalProperties"), false)
    assert.strictEqual(at("properties", "runtime", "properties", "account_max_inflight", "maximum"), 256)
    assert.isUndefined(at("required"))
  })
})
