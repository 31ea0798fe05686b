/** The test of all accounts, against a provider whose logins end in the order of the test's choice. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { createServer, type ServerResponse } from "node:http"
import { type RunningGateway, startGateway } from "../support/gateway.ts"
import { caller } from "./support.ts"

const count = 12
const atOnce = 5

let gateway: RunningGateway
const call = caller(() => gateway)

/** Logins that wait for their reply. */
const waiting: Array<() => void> = []
let answered = 0
let most = 0

const envelope = (response: ServerResponse, biz_data: unknown, biz_code = 0) => {
  response.setHeader("content-type", "application/json")
  response.end(JSON.stringify({ code: 0, msg: "", data: { biz_code, biz_msg: "", biz_data } }))
}

/** Answers the latest login once the maximum of logins waits, so that tests end in another order than they started. */
const login = (email: string, password: string, response: ServerResponse) => {
  waiting.push(() => envelope(response, { user: { token: `token-of-${email}` } }, password === "right" ? 0 : 2))
  most = Math.max(most, waiting.length)
  while (waiting.length > 0 && waiting.length >= Math.min(atOnce, count - answered)) {
    answered++
    waiting.pop()!()
  }
}

const provider = createServer((request, response) => {
  let text = ""
  request.setEncoding("utf8").on("data", (piece: string) => text += piece).on("end", () => {
    const path = request.url ?? ""
    if (path === "/api/v0/users/login") {
      const { email, password } = JSON.parse(text) as { readonly email: string; readonly password: string }
      login(email, password, response)
    } else if (path === "/api/v0/chat_session/create") envelope(response, { id: "session" })
    else if (path.startsWith("/api/v0/chat_session/fetch_page")) {
      envelope(response, { chat_sessions: [{ id: "one" }, { id: "two" }], has_more: false })
    } else envelope(response, {})
  })
})

const emails = Array.from({ length: count }, (_, index) => `user${index}@x.org`)
const failing = new Set(["user3@x.org", "user11@x.org"])

beforeAll(async () => {
  await new Promise<void>((resolve) => provider.listen(0, "127.0.0.1", resolve))
  const address = provider.address()
  gateway = await startGateway({
    accounts: emails.map((email) => ({ email, password: failing.has(email) ? "wrong" : "right" })),
    upstream: {
      driver: "session",
      base_url: `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`
    }
  })
})
afterAll(async () => {
  await gateway.stop()
  provider.closeAllConnections()
  await new Promise((resolve) => provider.close(resolve))
})

describe("the test of all accounts", () => {
  it("runs five at a time and returns results in the order of the configuration", async () => {
    const { json } = await call("POST", "/admin/accounts/test-all")
    const { results, ...totals } = json
    assert.deepStrictEqual(totals, { total: count, success: count - 2, failed: 2 })
    assert.strictEqual(most, atOnce)
    const shown = results as ReadonlyArray<Record<string, unknown>>
    assert.deepStrictEqual(shown.map((result) => result["account"]), emails)
    for (const result of shown) {
      const works = !failing.has(String(result["account"]))
      assert.deepInclude(result, {
        success: works,
        model: "upstream-chat",
        session_count: works ? 2 : 0,
        config_writable: false
      })
      assert.isTrue(Number.isInteger(result["response_time"]))
    }
  })

  it("records its outcome in the account list", async () => {
    const { items } = (await call("GET", "/admin/accounts?page_size=100")).json
    for (const item of items as ReadonlyArray<Record<string, unknown>>) {
      const works = !failing.has(String(item["email"]))
      assert.deepInclude(item, {
        test_status: works ? "ok" : "failed",
        health: works ? "ready" : "out",
        has_token: works
      })
      assert.deepInclude(item["last_test"], { success: works })
      assert.isAbove((item["last_test"] as { readonly message: string }).message.length, 0)
      if (!works) {
        assert.isString(item["health_reason"])
        assert.isTrue(Number.isInteger(item["recovery_seconds"]))
      }
    }
  })

  it("names the requested model, and rejects an unknown one", async () => {
    const { results } = (await call("POST", "/admin/accounts/test-all", { body: { model: "gpt-4o" } })).json
    assert.isTrue((results as ReadonlyArray<Record<string, unknown>>).every((each) => each["model"] === "gpt-4o"))
    assert.strictEqual((await call("POST", "/admin/accounts/test-all", { body: { model: "nothing" } })).status, 400)
  })
})
