/** The list of all settings, from which forms are made, and changes that are bound to a revision of it. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { writablePaths } from "../../src/admin/settings/patch.ts"
import { settingGroups } from "../../src/config/schema.ts"
import { businessKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { caller, storeOf } from "./support.ts"

interface Field {
  readonly path: string
  readonly type: string
  readonly minimum: number | null
  readonly maximum: number | null
  readonly choices: ReadonlyArray<string> | null
  readonly default: unknown
  readonly configured: unknown
  readonly effective: unknown
  readonly writable: boolean
  readonly description: string
}

let gateway: RunningGateway
const call = caller(() => gateway)

beforeAll(async () => {
  gateway = await startGateway({
    accounts: [{ email: "a@x.org", password: "a-secret-password" }],
    runtime: { account_max_inflight: 3 },
    msgcompat_model_mapping: { fast: "upstream-reasoner" },
    model_aliases: { mine: "upstream-chat" },
    upstream: { models: { further: "their-name" } },
    host: { token: "a-secret-token" }
  })
})
afterAll(() => gateway.stop())

const read = async () => {
  const { json, text } = await call("GET", "/admin/settings/fields")
  const fields = json["fields"] as ReadonlyArray<Field>
  return { revision: String(json["revision"]), fields, text, at: (path: string) => fields.find((f) => f.path === path) }
}

const put = (body: unknown, headers: Record<string, string> = {}) =>
  fetch(`${gateway.url}/admin/settings`, {
    method: "PUT",
    headers: { authorization: "Bearer test-admin-key", "content-type": "application/json", ...headers },
    body: JSON.stringify(body)
  }).then(async (response) => ({ status: response.status, json: await response.json() as Record<string, unknown> }))

describe("the fields of the settings", () => {
  it("have type, range, default, configured value and value in effect", async () => {
    const { at } = await read()
    assert.deepStrictEqual(at("runtime.account_max_inflight"), {
      path: "runtime.account_max_inflight",
      type: "integer",
      minimum: 1,
      maximum: 256,
      choices: null,
      default: null,
      configured: 3,
      effective: 3,
      writable: true,
      description: "Concurrent requests of one account."
    })
    assert.deepInclude(at("runtime.global_max_inflight"), { configured: null, effective: 3, default: null })
    assert.deepInclude(at("auto_delete.mode"), {
      type: "choice",
      choices: ["none", "single", "all"],
      configured: null,
      effective: "none",
      writable: true
    })
    assert.deepInclude(at("compat.strip_reference_markers"), { type: "boolean", default: true, effective: true })
    assert.deepInclude(at("msgcompat_mapping.fast"), {
      type: "text",
      default: "upstream-chat",
      configured: "upstream-reasoner",
      effective: "upstream-reasoner",
      writable: true
    })
    assert.deepInclude(at("model_aliases"), {
      type: "map",
      configured: { mine: "upstream-chat" },
      effective: { mine: "upstream-chat" },
      writable: true
    })
    assert.deepInclude(at("captures.limit"), { minimum: 1, maximum: 50, default: 20, effective: 20, writable: true })
    assert.deepInclude(at("upstream.timeouts.connect"), {
      type: "number",
      minimum: 0.01,
      default: 10,
      effective: 10,
      writable: false
    })
    assert.deepInclude(at("upstream.models"), { type: "map", configured: { further: "their-name" }, writable: false })
  })

  it("include every writable setting, each with a description, and no secret", async () => {
    const { fields, text } = await read()
    assert.strictEqual(new Set(fields.map(({ path }) => path)).size, fields.length)
    for (const field of fields) {
      assert.isNotEmpty(field.description, field.path)
      assert.notStrictEqual(field.effective, undefined, field.path)
    }
    for (const group of Object.keys(settingGroups)) {
      assert.isTrue(fields.some(({ path }) => path.split(".")[0] === group))
    }
    const paths = fields.map(({ path }) => path)
    assert.includeMembers(paths, [...writablePaths])
    assert.sameMembers(fields.filter(({ writable }) => writable).map(({ path }) => path), [...writablePaths])
    // Of webhooks only the names and descriptions of their fields are there.
    const others = JSON.stringify(JSON.parse(text, (name, value: unknown) => name === "webhooks" ? undefined : value))
    assert.notMatch(others, /secret|password_hash|generation|removed_keys/)
    assert.notInclude(text, businessKey)
    // Each field that is declared writable accepts its value in effect.
    for (const { effective, path, writable } of fields) {
      if (!writable || effective === null) continue
      const keys = path.split(".")
      const body = keys.reduceRight<unknown>((value, key) => ({ [key]: value }), effective)
      assert.strictEqual((await put(body)).status, 200, path)
      assert.deepStrictEqual((await read()).at(path)?.configured, effective, path)
    }
  })
})

describe("a change of the settings", () => {
  it("is rejected with all faults, each with the path of its field", async () => {
    const { json, status } = await put({
      runtime: { account_max_inflight: 0, global_max_inflight: "many" },
      compat: 7,
      captures: { limit: 51 },
      auto_delete: { sessions: "yes" },
      model_aliases: { x: "nowhere" }
    })
    assert.strictEqual(status, 400)
    const faults = json["faults"] as ReadonlyArray<{ field: string; message: string }>
    assert.sameMembers(faults.map(({ field }) => field), [
      "runtime.account_max_inflight",
      "runtime.global_max_inflight",
      "compat",
      "captures.limit",
      "auto_delete.sessions",
      "model_aliases.x"
    ])
    for (const { field, message } of faults) assert.include(message, field)
    assert.include(String(json["detail"]), "runtime.account_max_inflight must be between 1 and 256")
    const broken = await put([])
    assert.deepEqual([broken.status, (broken.json["faults"] as ReadonlyArray<unknown>).length], [400, 1])
  })

  it("with If-Match applies to that revision only", async () => {
    const { revision } = await read()
    assert.strictEqual((await put({ captures: { limit: 7 } }, { "if-match": "\"another\"" })).status, 409)
    assert.strictEqual((await put({ captures: { limit: 7 } }, { "if-match": `"${revision}"` })).status, 200)
    const next = await read()
    assert.deepInclude(next.at("captures.limit"), { configured: 7, effective: 7 })
    assert.notStrictEqual(next.revision, revision)
    const late = await put({ captures: { limit: 8 } }, { "if-match": revision })
    assert.strictEqual(late.status, 409)
    assert.match(String(late.json["detail"]), /changed since/)
    assert.strictEqual((await put({ captures: { limit: 8 } }, { "if-match": next.revision })).status, 200)
    assert.strictEqual((await put({ captures: { limit: 9 } }, { "if-match": "*" })).status, 200)
    const raw = await Effect.runPromise(storeOf(gateway).currentRaw)
    assert.deepInclude(raw["captures"], { limit: 9 })
  })
})

describe("a dry run of an import", () => {
  const imported = (body: unknown, search: string) => call("POST", `/admin/config/import${search}`, { body })
  const rawOf = () => Effect.runPromise(storeOf(gateway).currentRaw)

  it("returns the same reply as the import, and changes nothing", async () => {
    const before = await rawOf()
    const body = { keys: ["one", "two"], accounts: [{ email: "new@x.org", password: "p" }] }
    const tried = await imported(body, "?mode=merge&dry_run=true")
    assert.deepInclude(tried.json, { success: true, mode: "merge", imported_keys: 2, imported_accounts: 1 })
    assert.deepStrictEqual(await rawOf(), before)
    const refused = await imported({ runtime: { account_max_inflight: 0 } }, "?dry_run=true")
    assert.deepEqual([refused.status, refused.detail], [400, "runtime.account_max_inflight must be between 1 and 256"])
    assert.strictEqual((await imported(body, "?dry_run=perhaps")).status, 400)
    const made = await imported(body, "?mode=merge&dry_run=false")
    assert.deepStrictEqual({ ...made.json, message: "" }, { ...tried.json, message: "" })
    assert.notDeepEqual(await rawOf(), before)
  })

  it("says by number and name what a replacing import removes, adds and changes", async () => {
    const kept = { email: "new@x.org", password: "changed" }
    const { json } = await imported(
      { keys: ["two", "three"], accounts: [kept], runtime: { account_max_inflight: 7 } },
      "?mode=replace&dry_run=true"
    )
    const { accounts, keys, settings } = json["changes"] as {
      readonly [name: string]: { readonly [field: string]: unknown; readonly removed_names: ReadonlyArray<string> }
    }
    assert.deepInclude(keys, { after: 2, added: 1, changed: 0, removed: Number(keys!["before"]) - 1 })
    assert.strictEqual(keys!.removed_names.length, keys!["removed"])
    assert.isFalse(keys!.removed_names.includes("one"))
    assert.deepInclude(accounts, { after: 1, added: 0, changed: 1, removed: Number(accounts!["before"]) - 1 })
    assert.isFalse(accounts!.removed_names.includes("new@x.org"))
    assert.deepStrictEqual(settings as unknown, ["runtime", "msgcompat_mapping", "model_aliases"])
  })
})
