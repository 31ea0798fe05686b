/** Usage by app, session and agent: for operators, and for the holder of a key. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { sha256Hex } from "../../src/config/json.ts"
import { keyId } from "../../src/domain/identity.ts"
import { adminKey } from "../support/gateway.ts"
import { untilValue } from "../support/until.ts"
import { accounts, admin, type Site, startSite } from "./support.ts"

const [key, other] = ["sk-sessions", "sk-others"]

type Rows = ReadonlyArray<Readonly<Record<string, unknown>>>

let site: Site
beforeAll(async () => {
  site = await startSite({ keys: [key, other], accounts: accounts("a"), embeddings: { provider: "builtin" } })
  const sent: ReadonlyArray<readonly [key: string, headers: Record<string, string>]> = [
    [key, { "user-agent": "curl/8", "x-gateway-session": "s1" }],
    [key, { "user-agent": "curl/8", "x-gateway-session": "s1", "x-gateway-agent": "helper" }],
    [key, { "user-agent": "claude-cli/2", "x-claude-code-session-id": "=1+1" }],
    [key, { "user-agent": "curl/8" }],
    [other, { "user-agent": "curl/8", "x-gateway-session": "s1" }]
  ]
  for (const [bearer, headers] of sent) {
    const response = await fetch(`${site.url}/v1/embeddings`, {
      method: "POST",
      headers: { ...headers, authorization: `Bearer ${bearer}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "upstream-chat", input: "some words" })
    })
    assert.strictEqual(response.status, 200, await response.text())
  }
  await untilValue(
    "all requests are counted",
    async () => (await rowsBy("key")).map(counts),
    (found) => found.reduce((sum, count) => sum + count, 0) === sent.length
  )
})
afterAll(() => site.stop())

const counts = ({ requests }: Rows[number]) => Number(requests)
const rowsBy = async (by: string) => (await admin(site.url, "GET", `/admin/usage?by=${by}`))["rows"] as Rows
const cells = (rows: Rows, ...names: ReadonlyArray<string>) =>
  rows.map((row) => names.map((name) => row[name])).toSorted()
const own = (query: string) => fetch(`${site.url}/v1/usage?${query}`, { headers: { authorization: `Bearer ${key}` } })

describe("usage of sessions", () => {
  it("is read by app, session and agent; a session is one of its key", async () => {
    assert.deepStrictEqual(cells(await rowsBy("app"), "app", "requests"), [["claude-code", 1], ["curl", 4]])
    const [id, otherId] = [key, other].map((each) => keyId(each, sha256Hex))
    assert.deepStrictEqual(
      cells(await rowsBy("key,session,agent"), "key", "session", "agent", "requests"),
      [[id, "s1", "none", 1], [id, "s1", "helper", 1], [id, "=1+1", "none", 1], [id, "none", "none", 1], [
        otherId,
        "s1",
        "none",
        1
      ]].toSorted()
    )
  })

  it("is read as CSV, without a formula", async () => {
    const response = await fetch(`${site.url}/admin/usage.csv?by=session&app=claude-code`, {
      headers: { authorization: `Bearer ${adminKey}` }
    })
    const [header = "", row = ""] = (await response.text()).split("\r\n")
    assert.match(header, /^session,requests,/)
    assert.match(row, /^'=1\+1,1,/)
  })

  it("is read by the holder of a key: the own sessions alone, which add up to the key's requests", async () => {
    const { history, today } = await (await own("by=session")).json() as {
      readonly history: { readonly rows: Rows; readonly totals: Rows[number] }
      readonly today: Rows[number]
    }
    assert.deepStrictEqual(cells(history.rows, "session", "requests"), [["=1+1", 1], ["none", 1], ["s1", 2]])
    assert.strictEqual(history.totals["requests"], 4)
    assert.strictEqual(today["requests"], 4)
    const agents = await (await own("by=agent&session=s1")).json() as { readonly history: { readonly rows: Rows } }
    assert.deepStrictEqual(cells(agents.history.rows, "agent", "requests"), [["helper", 1], ["none", 1]])
    assert.notProperty(await (await own("")).json(), "history")
  })

  it("is split for the holder of a key by what belongs to its requests alone", async () => {
    const refused = await own("by=key")
    assert.strictEqual(refused.status, 400)
    assert.strictEqual((await refused.json() as { error: { param: string } }).error.param, "by")
  })
})
