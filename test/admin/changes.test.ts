/** The history of admin changes: who changed what, from where and when. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Layer, Logger } from "effect"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { hostname, tmpdir } from "node:os"
import path from "node:path"
import { ConfigStore } from "../../src/config/ConfigStore.ts"
import { Environment } from "../../src/config/Environment.ts"
import { withVariables } from "../config/support.ts"
import { adminKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { untilHolds } from "../support/until.ts"
import { caller } from "./support.ts"

interface Change {
  readonly id: string
  readonly at: string
  readonly who: { readonly kind: string; readonly name: string | null }
  readonly address: string | null
  readonly action: string
  readonly fields: ReadonlyArray<
    { readonly path: string; readonly before: string | null; readonly after: string | null }
  >
  readonly more_fields: number
  readonly node: string
}

const folder = mkdtempSync(path.join(tmpdir(), "changes-"))
const file = path.join(folder, "config.json")
const lines: Array<{ readonly message: unknown; readonly annotations: Readonly<Record<string, unknown>> }> = []
const logger = Logger.make<unknown, void>((options) => {
  const { annotations, message } = Logger.formatStructured.log(options)
  lines.push({ message, annotations })
})

let gateway: RunningGateway
const call = caller(() => gateway)

beforeAll(async () => {
  writeFileSync(
    file,
    JSON.stringify({ keys: ["a-key"], accounts: [{ email: "ada@example.com", password: "hunter2" }] })
  )
  gateway = await startGateway({}, {
    logger,
    store: ConfigStore.layer.pipe(
      Layer.provide(Environment.layer),
      Layer.provide(withVariables({ GATEWAY_CONFIG_PATH: file, GATEWAY_ADMIN_KEY: adminKey })),
      Layer.provide(NodeServices.layer)
    ),
    environment: { GATEWAY_CONFIG_PATH: file, GATEWAY_ADMIN_KEY: adminKey }
  })
})
afterAll(async () => {
  await gateway.stop()
  rmSync(folder, { recursive: true })
})

const page = async (query = "") => {
  const { json, status } = await call("GET", `/admin/changes${query}`)
  assert.strictEqual(status, 200)
  return json as unknown as { readonly changes: ReadonlyArray<Change>; readonly next: string | null }
}

const actions = async (query?: string) => (await page(query)).changes.map(({ action }) => action)

describe("the history of admin changes", () => {
  it("has each change with who made it, from where, and the fields that differ", async () => {
    const login = await call("POST", "/admin/login", { body: { admin_key: adminKey } })
    const session = String(login.json["token"])
    await call("PUT", "/admin/settings", { body: { runtime: { account_max_inflight: 7 } } })
    await call("PATCH", "/admin/accounts/ada@example.com", { bearer: session, body: { disabled: true } })
    const { changes, next } = await page()
    assert.isNull(next)
    assert.deepStrictEqual(
      changes.map(({ action, address, fields, more_fields, node, who }) => ({
        action,
        address,
        fields,
        more_fields,
        node,
        kind: who.kind
      })),
      [
        {
          action: "an account was marked",
          address: "127.0.0.0/24",
          fields: [{ path: "accounts[ada@example.com].disabled", before: null, after: "true" }],
          more_fields: 0,
          node: hostname(),
          kind: "session"
        },
        {
          action: "the settings were changed (runtime.account_max_inflight)",
          address: "127.0.0.0/24",
          fields: [{ path: "runtime.account_max_inflight", before: null, after: "7" }],
          more_fields: 0,
          node: hostname(),
          kind: "key"
        }
      ]
    )
    assert.match(changes[0]?.who.name ?? "", /^[0-9a-f]{8}$/)
    assert.isNull(changes[1]?.who.name)
    assert.isBelow(Math.abs(Date.parse(changes[0]!.at) - Date.now()), 600_000)
  })

  it("says the same as the log line of the change", () => {
    const settings = lines.find(({ message }) => String(message).startsWith("Admin change: the settings"))
    assert.containSubset(settings?.annotations, {
      who: "key",
      client: "127.0.0.0/24",
      fields: "runtime.account_max_inflight: unset → 7"
    })
    assert.property(settings?.annotations, "request_id")
  })

  it("has actions that change no configuration, and leaves out what changes nothing", async () => {
    const before = (await actions()).length
    await call("DELETE", "/admin/requests")
    await call("PUT", "/admin/settings", { body: { runtime: { account_max_inflight: 7 } } })
    await call("POST", "/admin/config/import?dry_run=true", { body: { keys: ["another-key"] } })
    await call("PUT", "/admin/settings", { body: { runtime: { account_max_inflight: 0 } } })
    await call("GET", "/admin/accounts", { bearer: "wrong" })
    const after = await actions()
    assert.strictEqual(after.length, before + 1)
    assert.strictEqual(after[0], "the records of requests were cleared")
  })

  it("contains the edits of the configuration file", async () => {
    const edited = { ...JSON.parse(readFileSync(file, "utf8")) as object, compat: { family_models: false } }
    writeFileSync(file, JSON.stringify(edited))
    await untilHolds(async () => (await actions())[0] === "the configuration file was edited")
    const [edit] = (await page("?limit=1")).changes
    assert.deepStrictEqual(edit?.who, { kind: "file", name: file })
    assert.isNull(edit?.address)
    assert.deepStrictEqual(edit?.fields, [{ path: "compat.family_models", before: null, after: "false" }])
  })

  it("is read in pages, from a change, a cursor or a time on", async () => {
    const all = (await page()).changes
    const first = await page("?limit=2")
    assert.deepStrictEqual(first.changes, all.slice(0, 2))
    const second = await page(`?limit=200&before=${first.next ?? ""}`)
    assert.deepStrictEqual([...second.changes], all.slice(2))
    assert.isNull(second.next)
    assert.deepStrictEqual((await page(`?before=${all[0]!.id}`)).changes, all.slice(1))
    assert.isEmpty((await page("?before=2020-01-01T00:00:00Z")).changes)
    const wrong = await call("GET", "/admin/changes?before=yesterday")
    assert.strictEqual(wrong.status, 400)
    assert.strictEqual(wrong.detail, "before must be the id of a change or an RFC 3339 time")
  })

  it("does not contain passwords", async () => {
    await call("POST", "/admin/settings/password", { body: { new_password: "a-new-password" } })
    const { json, text } = await call("GET", "/admin/changes", { bearer: "a-new-password" })
    const { changes } = json as unknown as { readonly changes: ReadonlyArray<Change> }
    assert.strictEqual(changes[0]?.action, "the password was changed")
    assert.deepStrictEqual(changes[0]?.fields, [{ path: "admin.password_hash", before: null, after: "***" }])
    assert.notInclude(text, "scrypt")
    assert.notInclude(text, "hunter2")
  })
})
