/** Credentials that renew in a gateway over sockets: what servers and callers see, and where no secret is. */
import { afterAll, afterEach, assert, beforeAll, beforeEach, describe, it } from "@effect/vitest"
import { Logger } from "effect"
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import type { RawConfig } from "../../src/config/json.ts"
import { caller } from "../admin/support.ts"
import {
  type Behaviour,
  chat,
  drivers,
  type Farm,
  json,
  said,
  send,
  startFarm,
  wayName,
  ways
} from "../several/support.ts"
import { type RunningGateway, startGateway } from "../support/gateway.ts"
import { certificate, privateKey, secrets, startTokenServer, type TokenServer } from "./tokenServer.ts"

let farm: Farm
let tokens: TokenServer
let folder: string
let gateway: RunningGateway
const lines: Array<string> = []
const logger = Logger.make<unknown, void>((options) => {
  lines.push(JSON.stringify(Logger.formatStructured.log(options)))
})
const call = caller(() => gateway)
beforeAll(async () => {
  farm = await startFarm()
  tokens = await startTokenServer()
})
afterAll(async () => {
  await farm.stop()
  await tokens.stop()
})
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "credentials-"))
  lines.length = 0
})
afterEach(async () => {
  await gateway.stop()
  rmSync(folder, { recursive: true })
})

const put = (name: string, token: string): string => {
  const file = path.join(folder, name)
  writeFileSync(file, `${token}\n`)
  return file
}

const start = async (accounts: ReadonlyArray<RawConfig>, names = ["one"]) => {
  gateway = await startGateway({
    upstreams: Object.fromEntries(names.map((name) => [name, farm.upstream(name)])),
    accounts
  }, { logger, logLevel: "Debug" })
}

const keys = (name: string) => farm.seen(name).map(({ key }) => key)

/** A server that accepts one token, and refuses others as `answer` says. */
const accepting = (token: string, answer: Behaviour): Behaviour => (request, index) =>
  request.key === token ? said("Hello", request) : answer(request, index)

const error = (status: number, message: string, code?: string): Behaviour => () =>
  json(status, { error: { message, ...(code === undefined ? {} : { code }) } })

/** A program of the system that prints the text of a file. */
const printing = (file: string, ...args: ReadonlyArray<string>) => ({
  from: "command",
  run: [process.execPath, "-p", "require('node:fs').readFileSync(process.argv[1], 'utf8').trim()", file, ...args],
  for: 600
})

const names = ["one", "two", "three"]

const entraClient = () => ({ from: "entra", tenant: "tenant-1", client: "client-1", authority: tokens.url })
const client = (secret: string) => ({ ...entraClient(), secret })

/** A line of a key in PEM, which every form of it has. */
const bodyOfKey = (pem: string): string => pem.split("\n")[2]!

const expired = [
  ["401", error(401, "Unauthorized")],
  ["401 with a code", error(401, "the token is over", "token_expired")],
  ["403 with a code", error(403, "Forbidden", "ExpiredToken")],
  ["403 that says so", error(403, "The security token included in the request is expired")]
] as const

describe.each(expired)("a token that the server refuses by %s", (_, answer) => {
  it.each(ways)("is renewed and the request repeated once: $style, streamed $stream", async (way) => {
    const name = wayName(way)
    await start([{ upstream: name, credential: { from: "file", path: put("token", "t-first") } }], [name])
    farm.answer(name, (request) => said("Hello", request))
    assert.strictEqual((await send(gateway, way, `${name}/m`)).status, 200)
    put("token", "t-second")
    farm.answer(name, accepting("t-second", answer))
    const told = await send(gateway, way, `${name}/m`)
    assert.deepStrictEqual([told.status, told.text], [200, "Hello"], told.body)
    assert.deepStrictEqual(keys(name), ["t-first", "t-second"])
  })
})

describe("a token of a program", () => {
  it("that ends in mid-life is replaced by the next one, which the program prints, for all concurrent requests", async () => {
    const file = put("printed", "t-first")
    await start([{ upstream: "one", credential: printing(file) }])
    farm.answer("one", (request) => said("Hello", request))
    assert.strictEqual((await chat(gateway, "one/m")).status, 200)
    put("printed", "t-second")
    farm.answer("one", accepting("t-second", error(401, "Unauthorized")))
    const told = await Promise.all(Array.from({ length: 4 }, () => chat(gateway, "one/m")))
    assert.deepStrictEqual(told.map(({ status }) => status), [200, 200, 200, 200])
    assert.deepStrictEqual([...new Set(keys("one"))], ["t-first", "t-second"])
    const { items: [item] } = (await call("GET", "/admin/accounts")).json as { items: ReadonlyArray<RawConfig> }
    assert.deepInclude(item, { health: "ready" })
  })
})

describe("a route over upstreams whose accounts have credentials", () => {
  it("goes on to the next upstream where a source fails, and where a server refuses its new token too", async () => {
    const refused = put("refused", "t-refused")
    gateway = await startGateway({
      upstreams: Object.fromEntries(names.map((name) => [name, farm.upstream(name)])),
      accounts: [
        { upstream: "one", credential: { from: "file", path: path.join(folder, "missing") } },
        { upstream: "two", credential: { from: "file", path: refused } },
        { upstream: "three", credential: client(secrets.client) }
      ],
      routes: { any: ["one/m", "two/m", "three/m"] }
    }, { logger, logLevel: "Debug" })
    farm.answer("one", (request) => said("Never", request))
    farm.answer("two", error(401, "Unauthorized"))
    farm.answer("three", (request) => said("Hello", request))
    const told = await chat(gateway, "any")
    assert.deepStrictEqual([told.status, told.text], [200, "Hello"], told.body)
    assert.deepStrictEqual([keys("one"), keys("two")], [[], ["t-refused"]])
    assert.match(String(keys("three")[0]), /^client-token-\d+$/)
    const { items } = (await call("GET", "/admin/accounts")).json as { items: ReadonlyArray<RawConfig> }
    assert.deepStrictEqual(items.map(({ health, upstream }) => [upstream, health]).sort(), [
      ["one", "out"],
      ["three", "ready"],
      ["two", "out"]
    ])
  })
})

describe("a refusal for another reason", () => {
  it("is not repeated with a new token", async () => {
    await start([{ upstream: "one", credential: { from: "file", path: put("token", "t-first") } }])
    farm.answer("one", error(403, "This model is not for you"))
    assert.notStrictEqual((await chat(gateway, "one/m")).status, 200)
    assert.deepStrictEqual([...new Set(keys("one"))], ["t-first"])
  })

  it("of the second token takes the account out, with what the source says", async () => {
    const file = put("token", "t-first")
    await start([{ upstream: "one", credential: { from: "file", path: file } }])
    farm.answer("one", (_, index) => {
      put("token", `t-${index}`)
      return json(401, { error: { message: "Unauthorized" } })
    })
    const told = await chat(gateway, "one/m")
    assert.strictEqual(told.status, 503, told.body)
    assert.deepStrictEqual(keys("one"), ["t-first", "t-0"])
    const { items: [item] } = (await call("GET", "/admin/accounts")).json as { items: ReadonlyArray<RawConfig> }
    assert.deepInclude(item, { health: "out", health_reason: "the upstream refuses its login" })
    assert.deepInclude(item!["credential"], { kind: "file", identity: file, expires_at: null, failure: null })
  })
})

const canaries = {
  file: "canary-of-a-file",
  program: "canary-of-a-program",
  argument: "canary-of-an-argument",
  client: secrets.client,
  refresh: secrets.refresh,
  federated: secrets.subject,
  googleKey: bodyOfKey(privateKey),
  entraKey: bodyOfKey(certificate.key)
}

/** The accounts whose secrets these are, by their upstreams. */
const secretAccounts = (): Readonly<Record<string, RawConfig>> => ({
  one: { from: "file", path: put("of-file", canaries.file) },
  two: printing(put("of-program", canaries.program), canaries.argument),
  three: client(secrets.client),
  service: {
    from: "google",
    file: put(
      "service.json",
      JSON.stringify({
        type: "service_account",
        client_email: "gateway@project.iam.gserviceaccount.com",
        private_key: privateKey,
        private_key_id: "key-1",
        token_uri: `${tokens.url}/google`
      })
    )
  },
  user: {
    from: "google",
    file: put(
      "user.json",
      JSON.stringify({
        type: "authorized_user",
        client_id: "client-1",
        client_secret: secrets.client,
        refresh_token: secrets.refresh,
        token_uri: `${tokens.url}/google`
      })
    )
  },
  certified: { ...entraClient(), certificate_file: put("certificate.pem", `${certificate.key}${certificate.cert}`) },
  federated: { ...entraClient(), federated_file: put("federated", secrets.subject) }
})
const secretNames = ["one", "two", "three", "service", "user", "certified", "federated"]

describe("the secrets of credentials", () => {
  const begin = async () => {
    const accounts = Object.entries(secretAccounts()).map(([upstream, credential]) => ({ upstream, credential }))
    await start(accounts, secretNames)
    for (const name of secretNames) farm.answer(name, (request) => said("Hello", request))
  }

  it("are in no reply of the admin API, log line, record, capture, metric or error", async () => {
    await begin()
    await call("PUT", "/admin/settings", { body: { captures: { enabled: true } } })
    for (const name of secretNames) {
      assert.strictEqual((await chat(gateway, `${name}/m`)).status, 200, name)
      // A server that repeats the token in its error.
      farm.answer(name, ({ key }) => json(401, { error: { message: `the token ${key} is unknown to us` } }))
    }
    const told = await Promise.all(secretNames.map((name) => chat(gateway, `${name}/m`)))
    assert.deepStrictEqual([keys("one")[0], keys("two")[0]], [canaries.file, canaries.program])
    const paths = [
      "/admin/accounts",
      "/admin/config",
      "/admin/config/export",
      "/admin/settings",
      "/admin/upstreams",
      "/admin/requests",
      "/admin/dev/captures",
      "/admin/changes",
      "/admin/queue/status",
      "/metrics"
    ]
    const replies = await Promise.all(paths.map((place) => call("GET", place)))
    assert.deepStrictEqual(replies.map(({ status }) => status), paths.map(() => 200))
    const all = [...replies.map(({ text }) => text), ...told.map(({ body }) => body), ...lines].join("\n")
    for (const secret of [...Object.values(canaries), "client-token-", "service-token-", "user-token-"]) {
      assert.notInclude(all, secret)
    }
    // What they are of is shown.
    for (const shown of ["of-file", process.execPath, "is unknown to us"]) assert.include(all, shown)
  })

  it("stay as they are when an export is imported, which shows them as ***", async () => {
    await begin()
    const exported = (await call("GET", "/admin/config/export")).json as { readonly config: RawConfig }
    for (const shown of ["\"run\":[\"***\"", "\"secret\":\"***\""]) {
      assert.include(JSON.stringify(exported.config), shown)
    }
    for (const mode of ["merge", "replace"]) {
      const body = { mode, config: exported.config }
      const imported = await call("POST", "/admin/config/import", { body })
      assert.strictEqual(imported.status, 200, imported.text)
    }
    assert.strictEqual((await chat(gateway, "two/m")).status, 200)
    assert.deepStrictEqual(keys("two"), [canaries.program])
    assert.strictEqual((await chat(gateway, "three/m")).status, 200)
  })

  it.each([
    ["POST", "/admin/accounts", (credential: RawConfig) => ({ upstream: "one", credential })],
    ["POST", "/admin/accounts/batch", (credential: RawConfig) => ({
      action: "add",
      accounts: [{ upstream: "one", credential }]
    })],
    ["POST", "/admin/config", (credential: RawConfig) => ({ accounts: [{ upstream: "one", credential }] })],
    ["POST", "/admin/import", (credential: RawConfig) => ({ accounts: [{ upstream: "one", credential }] })],
    ["POST", "/admin/config/import", (credential: RawConfig) => ({ accounts: [{ upstream: "one", credential }] })]
  ])("come from the configuration file alone: %s %s brings no program", async (method, place, bodyOf) => {
    await begin()
    const evidence = path.join(folder, "evidence")
    const script = `require('node:fs').writeFileSync(${JSON.stringify(evidence)}, '')`
    const body = bodyOf({ from: "command", run: [process.execPath, "-e", script] })
    const answer = await call(method, place, { body })
    const after = await call("GET", "/admin/accounts")
    assert.strictEqual((after.json as { readonly total: number }).total, secretNames.length, answer.text)
    await chat(gateway, "one/m")
    assert.notInclude(readdirSync(folder), "evidence")
    assert.include(readFileSync(path.join(folder, "of-file"), "utf8"), canaries.file)
  })
})

describe("the start of a gateway", () => {
  it("asks no source, and no request waits for the source of another account", async () => {
    tokens.seen.length = 0
    await start([
      { upstream: "one", token: "k" },
      { upstream: "two", credential: client(secrets.client) },
      { upstream: "three", credential: { from: "google" } }
    ], names)
    farm.answer("one", (request) => said("Hello", request))
    assert.strictEqual((await chat(gateway, "one/m")).status, 200)
    assert.deepStrictEqual(tokens.seen, [])
    farm.answer("two", (request) => said("Hello", request))
    assert.strictEqual((await chat(gateway, "two/m")).status, 200)
    assert.lengthOf(tokens.seen, 1)
  })
})

describe("an access token of Google or Entra", () => {
  it.each(drivers.flatMap((driver) => [{ driver }, { driver, credential_header: "x-own" }]))(
    "is a bearer token at the server, whatever the header of its keys is: %j",
    async (upstream) => {
      gateway = await startGateway({
        upstreams: { one: farm.upstream("one", upstream) },
        accounts: [{ upstream: "one", credential: client(secrets.client) }]
      })
      let first: string | undefined
      farm.answer("one", (request, index) => {
        first ??= request.key
        return index === 0 ? json(401, { error: { message: "expired" } }) : said("Hello", request)
      })
      const told = await chat(gateway, "one/m")
      assert.deepStrictEqual([told.status, told.text], [200, "Hello"], told.body)
      assert.lengthOf(farm.seen("one"), 2)
      for (const { headers } of farm.seen("one")) {
        assert.match(headers.authorization ?? "", /^Bearer client-token-\d+$/)
        const others = ["x-api-key", "x-goog-api-key", "x-own"].filter((name) => headers[name] !== undefined)
        assert.deepStrictEqual(others, [])
      }
      assert.notStrictEqual(farm.seen("one")[1]?.key, first)
    }
  )
})

describe("the test of an upstream", () => {
  it("uses the token of its account's source", async () => {
    await start([{ upstream: "one", credential: client(secrets.client) }])
    farm.server.list(() => json(200, { data: [{ id: "m" }] }))
    const tested = await call("POST", "/admin/upstreams/one/test", { body: {} })
    assert.deepInclude(tested.json, { success: true, models: ["m"] }, tested.text)
    assert.match(farm.server.lists.at(-1)?.key ?? "", /^client-token-\d+$/)
  })
})

describe("the order to renew a token now", () => {
  const renew = (identifier: string) => call("POST", `/admin/accounts/${encodeURIComponent(identifier)}/renew`)

  it("brings a newer token, and leaves the old one in use while the source fails", async () => {
    const file = put("token", "t-first")
    await start([{ upstream: "one", credential: { from: "file", path: file } }])
    farm.answer("one", (request) => said("Hello", request))
    const { items: [item] } = (await call("GET", "/admin/accounts")).json as {
      items: ReadonlyArray<{ readonly identifier: string }>
    }
    const { identifier } = item!
    const first = await renew(identifier)
    assert.deepInclude(first.json, { success: true, message: "" }, first.text)
    put("token", "t-second")
    await renew(identifier)
    assert.strictEqual((await chat(gateway, "one/m")).status, 200)
    rmSync(file)
    const failed = (await renew(identifier)).json as { readonly message: string; readonly account: RawConfig }
    assert.match(failed.message, /^file: the file cannot be read: missing/)
    assert.deepInclude(failed.account, { health: "ready" })
    assert.include(JSON.stringify(failed.account), "\"failure\":{\"message\":\"file: ")
    assert.strictEqual((await chat(gateway, "one/m")).status, 200)
    assert.deepStrictEqual(keys("one"), ["t-second", "t-second"])
  })

  it("is refused for an account with a token, and for an unknown one", async () => {
    await start([{ upstream: "one", token: "sk-canary" }])
    const { items: [item] } = (await call("GET", "/admin/accounts")).json as {
      items: ReadonlyArray<{ readonly identifier: string }>
    }
    const refused = await renew(item!.identifier)
    assert.deepStrictEqual([refused.status, (await renew("token:0000000000000000")).status], [409, 404])
    assert.include(refused.text, "there is nothing to renew")
  })
})
