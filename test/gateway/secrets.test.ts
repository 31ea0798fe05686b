/**
 * Recognizable secrets, seeded everywhere and repeated by the upstream, appear in no reply to a caller, log line, trace
 * or capture.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect, Logger } from "effect"
import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { sha256Hex } from "../../src/config/json.ts"
import type { FaultOrder } from "../../src/testing/Provider.ts"
import { adminKey } from "../support/gateway.ts"
import { admin, isQuiet, type Site, startSite } from "./support.ts"

/** Ordinary words, which no redaction matches. */
const secrets = {
  key: "open sesame",
  admin: adminKey,
  password: "correct horse battery",
  token: "friendandenter",
  own: "myownwordtoenter",
  removed: "formerly sesame",
  email: "someone@x.org",
  mobile: "13812345678",
  login: "reference-token-"
}

const words = "Words of the upstream"

const keptFrom = (text: string, about: string) => {
  for (const secret of Object.values(secrets)) assert.notInclude(text, secret, about)
}

const lines: Array<string> = []
const exported: Array<string> = []
const accounts = [
  { email: secrets.email, password: secrets.password },
  { mobile: secrets.mobile, password: secrets.password },
  { token: secrets.token }
]

let collector: Server
let site: Site
/** Admin tokens that were issued. */
const jwts: Array<string> = []

/** Collects everything that is exported to it. */
const startCollector = async () => {
  collector = createServer((request, response) => {
    const pieces: Array<Buffer> = []
    request.on("data", (piece: Buffer) => pieces.push(piece))
    request.on("end", () => {
      exported.push(`${request.url} ${Buffer.concat(pieces).toString()}`)
      response.writeHead(200, { "content-type": "application/json" }).end("{}")
    })
  })
  await new Promise<void>((resolve) => collector.listen(0, "127.0.0.1", resolve))
  return `http://127.0.0.1:${(collector.address() as AddressInfo).port}`
}

let changes = 0
/** Resets tokens and the health of the accounts. */
const freshAccounts = () =>
  site.change({
    upstream: { driver: "session", base_url: site.baseUrl, timeouts: { queue: 0, silence: 100 + ++changes } }
  })

beforeAll(async () => {
  const endpoint = await startCollector()
  site = await startSite({
    keys: [secrets.key],
    accounts,
    telemetry: { capture_content: true, propagate: true },
    captures: { limit: 50 }
  }, {
    environment: { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint },
    logLevel: "Trace",
    logger: Logger.make((options) => {
      lines.push(JSON.stringify(Logger.formatStructured.log(options)))
    })
  })
  await admin(site.url, "POST", "/admin/keys", { key: secrets.removed })
  await admin(site.url, "DELETE", `/admin/keys/${encodeURIComponent(secrets.removed)}`)
  const { token } = await admin(site.url, "POST", "/admin/login", { admin_key: adminKey })
  jwts.push(String(token))
})
afterAll(() => collector.close())

type Made = readonly [path: string, headers: Record<string, string>, body: unknown]

/** A request in each style, and one for each place of a credential. */
const styles: ReadonlyArray<(prompt: string, stream: boolean, credential: string) => Made> = [
  (prompt, stream, credential) => [
    "/v1/chat/completions",
    { authorization: `Bearer ${credential}` },
    { model: "upstream-chat", stream, messages: [{ role: "user", content: prompt }] }
  ],
  (prompt, stream, credential) => [
    "/v1/responses",
    { "x-api-key": credential },
    { model: "upstream-chat", stream, input: prompt }
  ],
  (prompt, stream, credential) => [
    "/v1/messages",
    { "x-api-key": credential },
    { model: "upstream-chat", stream, max_tokens: 99, messages: [{ role: "user", content: prompt }] }
  ],
  (prompt, stream, credential) => [
    `/v1beta/models/upstream-chat:${stream ? "streamGenerateContent" : "generateContent"}?key=${
      encodeURIComponent(credential)
    }`,
    {},
    { contents: [{ role: "user", parts: [{ text: prompt }] }] }
  ]
]

/** The whole reply: status, headers, body. */
const ask = async ([path, headers, body]: Made): Promise<string> => {
  const response = await fetch(site.url + path, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: typeof body === "string" ? body : JSON.stringify(body)
  })
  return `${response.status} ${JSON.stringify([...response.headers])} ${await response.text()}`
}

/** Failures whose messages contain the secrets. */
const faults: ReadonlyArray<ReadonlyArray<FaultOrder>> = [
  [{ name: "trouble", call: "login" }],
  [{ name: "wrong-credentials", call: "login" }],
  [{ name: "suspended", call: "login" }],
  [{ name: "trouble", call: "create" }],
  [{ name: "token-invalid", call: "create" }],
  [{ name: "trouble" }],
  [{ name: "refused" }],
  [{ name: "rate-limited", retryAfter: 3 }],
  [{ name: "too-long" }],
  [{ name: "token-expired" }],
  [{ name: "hint", after: 0 }],
  [{ name: "hint", after: 0, reason: "other" }],
  [{ name: "reset-mid-stream" }, { name: "trouble", call: "continue" }],
  [{ name: "reset-mid-stream" }, { name: "token-expired", call: "continue" }]
]

/** Who sends the request, and the secrets that the upstream receives, besides the token of a login. */
const callers: ReadonlyArray<{
  readonly about: string
  readonly credential: string
  readonly target?: string
  readonly told: ReadonlyArray<string>
  readonly logsIn: boolean
}> = [
  {
    about: "an account by email",
    credential: secrets.key,
    target: secrets.email,
    told: [secrets.email, secrets.password],
    logsIn: true
  },
  {
    about: "an account by mobile",
    credential: secrets.key,
    target: secrets.mobile,
    told: [secrets.mobile, secrets.password],
    logsIn: true
  },
  {
    about: "an account by token",
    credential: secrets.key,
    target: `token:${sha256Hex(secrets.token).slice(0, 16)}`,
    told: [secrets.token],
    logsIn: false
  },
  { about: "a caller with a token", credential: secrets.own, told: [secrets.own], logsIn: false }
]

/** The number of tokens that logins have returned so far. */
let issued = 0
const forget = async () => {
  for (const count of Object.values((await site.report()).logins)) issued += count
  await Effect.runPromise(site.reference.forget)
}

const order = (fault: FaultOrder) => Effect.runPromise(site.reference.fail(fault))

/** A rejected token that cannot be replaced gets the gateway's own message. */
const isTokenRefusal = ({ name }: FaultOrder) => name === "token-invalid" || name === "token-expired"

describe("secrets of callers and accounts", () => {
  for (const { about, credential, logsIn, target, told } of callers) {
    const targeted = target === undefined ? {} : { "x-gateway-target-account": target }

    it(`${about}: no reply contains them, although the upstream's errors repeat them`, async () => {
      for (const orders of faults.filter(([first]) => logsIn || first?.call !== "login")) {
        for (const [i, make] of styles.entries()) {
          await freshAccounts()
          await forget()
          // A rejected token is replaced by the next one; a whole reply has two attempts.
          for (const [number, times] of [[1, 1], [2, 1], [3, 1], [4, 99]] as const) {
            for (const fault of orders) {
              const token = logsIn && fault.call !== "login" ? [`${secrets.login}${issued + number}`] : []
              await order({ ...fault, message: `${words}: ${[...told, ...token].join(", ")}`, times })
            }
          }
          const [path, headers, body] = make("!say one two", i % 2 === 0, credential)
          const reply = await ask([path, { ...headers, ...targeted }, body])
          keptFrom(reply, JSON.stringify({ orders, reply }))
          if (logsIn || !orders.some(isTokenRefusal)) assert.include(reply, words)
        }
      }
      await forget()
      await site.until(isQuiet)
    })

    it(`${about}: captures contain only the account's name`, async () => {
      await admin(site.url, "DELETE", "/admin/dev/captures")
      await freshAccounts()
      await forget()
      const token = logsIn ? `${secrets.login}${issued + 1}` : told[0] ?? ""
      const [path, headers, body] = styles[0]!("!say one two", true, credential)
      await order({ name: "cut-off", after: 1 })
      await order({ name: "trouble", call: "continue", message: `${words}: ${token}` })
      assert.include(await ask([path, { ...headers, ...targeted }, body]), words)
      await order({ name: "hint", after: 1, message: `${words}: ${token}, and once more: ${token}` })
      assert.include(await ask([path, { ...headers, ...targeted }, body]), words)
      const { items } = await admin(site.url, "GET", "/admin/dev/captures")
      const captures = JSON.stringify(items)
      assert.lengthOf(captures.split(words), 3)
      for (const secret of [token, secrets.key, secrets.password]) assert.notInclude(captures, secret)
      await forget()
    })
  }

  it("the gateway's own errors do not contain them", async () => {
    for (const credential of [secrets.removed, secrets.admin, jwts[0] ?? ""]) {
      for (const make of styles) {
        const reply = await ask(make("!say one", false, credential))
        assert.match(reply, /^401 /)
        keptFrom(reply, reply)
        assert.notInclude(reply, credential)
      }
    }
    const headers = { authorization: `Bearer ${secrets.key}` }
    const refused: ReadonlyArray<Made> = [
      ["/v1/chat/completions", headers, `{"model": "upstream-chat", "messages": ${secrets.password}}`],
      ["/v1/chat/completions", { ...headers, "x-gateway-target-account": secrets.email }, ""],
      [`/v1/chat/completions/${encodeURIComponent(secrets.key)}`, headers, {}],
      [`/nowhere?key=${encodeURIComponent(secrets.key)}`, {}, {}]
    ]
    for (const made of refused) {
      const reply = await ask(made)
      assert.match(reply, /^40[04] /)
      keptFrom(reply, reply)
    }
  })

  it("log lines and traces at the most detailed level do not contain them", async () => {
    // A failed deletion of a session is logged and never reported to a caller.
    await site.change({ auto_delete: { mode: "single" } })
    await order({ name: "trouble", call: "delete", message: `${words}: ${Object.values(secrets).join(", ")}1` })
    await ask(styles[0]!("!say one", false, secrets.key))
    await site.until((report) => report.calls.delete === 1 && isQuiet(report))
    await site.stop()
    assert.isAbove(lines.length, 100)
    assert.isAbove(exported.length, 0)
    assert.match(exported.join(""), /v1\/traces.*POST \/v1\/chat\/completions/s)
    const written = [...lines, ...exported].join("\n")
    assert.include(written, "Could not delete upstream sessions")
    keptFrom(written, "the log and the traces")
    for (const jwt of jwts) assert.notInclude(written, jwt)
  })
})
