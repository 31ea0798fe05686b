/** Servers of clouds behind a gateway, over sockets: what their vendors' documents ask for, and what a caller sees of each event of a credential. */
import { afterAll, afterEach, assert, beforeAll, beforeEach, describe, it } from "@effect/vitest"
import { Logger } from "effect"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import type { RawConfig } from "../../src/config/json.ts"
import { type CloudServer, type KnownToken, startCloudServer } from "../../src/testing/clouds/cloudServer.ts"
import { exceptionFrame } from "../../src/testing/clouds/eventFrames.ts"
import type { KnownKey } from "../../src/testing/clouds/signature.ts"
import { caller } from "../admin/support.ts"
import { privateKey, secrets, startTokenServer, type TokenServer } from "../credentials/tokenServer.ts"
import { businessKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import * as Generate from "../support/generateServer.ts"
import * as Messages from "../support/messagesServer.ts"
import { type Answer, chunk, json, streamed, usage } from "../support/openaiServer.ts"
import * as Responses from "../support/responsesServer.ts"
import { send } from "./support.ts"

const arn = "arn:aws:bedrock:eu-central-1:123456789012:inference-profile/eu.anthropic.claude-x-v1:0"
const call = { name: "look", arguments: "{\"at\":\"sea\"}" }

type Reply = (isStream: boolean, uses: boolean) => Answer

const chat: Reply = (isStream, uses) => {
  const calls = [{ index: 0, id: "call_1", type: "function", function: call }]
  if (isStream) return streamed(uses ? { tool_calls: calls } : { content: "Hello" })
  const message = uses
    ? { role: "assistant", content: null, tool_calls: calls }
    : { role: "assistant", content: "Hello" }
  const finish_reason = uses ? "tool_calls" : "stop"
  return json(200, { ...chunk({}), object: "chat.completion", choices: [{ index: 0, message, finish_reason }], usage })
}

const responses: Reply = (isStream, uses) => {
  const item = uses ? Responses.callItem(call.name, call.arguments) : Responses.messageItem("Hello")
  const response = Responses.responseOf([item])
  return isStream ? Responses.streamed(response) : Responses.whole(response)
}

const messages: Reply = (isStream, uses) => {
  const block = uses
    ? { type: "tool_use", id: "toolu_1", name: call.name, input: { at: "sea" } }
    : Messages.textBlock("Hello")
  const stop = { stop: { stop_reason: uses ? "tool_use" : "end_turn" } }
  return isStream ? Messages.streamedMessage([block], stop) : Messages.wholeMessage([block], stop)
}

const generate: Reply = (isStream, uses) => {
  const part = uses ? { functionCall: { name: call.name, args: { at: "sea" } } } : { text: "Hello" }
  const said = Generate.chunk([part], { finishReason: "STOP" })
  return isStream ? Generate.streamed(said) : json(200, said)
}

let cloud: CloudServer
let tokens: TokenServer
let folder: string
let gateway: RunningGateway
const keys = new Map<string, KnownKey>()
const ended = new Set<string>()
const lines: Array<string> = []
const logger = Logger.make<unknown, void>((options) =>
  void lines.push(JSON.stringify(Logger.formatStructured.log(options)))
)
const admin = caller(() => gateway)

/** Whom tokens and keys are for, by their beginnings. */
const audiences = [
  ["service-token-", "google"],
  ["client-token-", "azure"],
  ["azure-key", "azure"],
  ["bedrock-api-key-", "bedrock"]
] as const

const tokenOf = (token: string): KnownToken | undefined => {
  const audience = audiences.find(([start]) => token.startsWith(start))?.[1]
  return audience && { audience, isExpired: ended.has(token) }
}

beforeAll(async () => {
  tokens = await startTokenServer()
  cloud = await startCloudServer({
    region: "eu-central-1",
    project: "project-1",
    keys,
    tokenOf,
    models: ["claude", "gpt", arn]
  })
})
afterAll(async () => {
  await cloud.stop()
  await tokens.stop()
})
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "clouds-"))
  cloud.skew = 0
  lines.length = 0
  ended.clear()
  keys.clear()
  keys.set("CANARYAKID", { secret: "canary/secret", session: "canary.session", isExpired: false })
})
afterEach(async () => {
  await gateway.stop()
  rmSync(folder, { recursive: true })
})

const write = (name: string, text: string): string => {
  const file = path.join(folder, name)
  writeFileSync(file, text)
  return file
}

/** The keys of the profile `work`, in a file that AWS's variable names. */
const profile = (id: string, secret: string, session: string) => {
  process.env["AWS_SHARED_CREDENTIALS_FILE"] = write(
    "credentials",
    `[work]\naws_access_key_id=${id}\naws_secret_access_key=${secret}\naws_session_token=${session}\n`
  )
}

const aws = () => {
  profile("CANARYAKID", "canary/secret", "canary.session")
  return { credential: { from: "aws", profile: "work" } }
}
const google = () => ({
  credential: {
    from: "google",
    file: write(
      "sa.json",
      JSON.stringify({
        type: "service_account",
        client_email: "gateway@project.iam.gserviceaccount.com",
        private_key: privateKey,
        private_key_id: "key-1",
        token_uri: `${tokens.url}/google`
      })
    )
  }
})
const entra = () => ({
  credential: {
    from: "entra",
    tenant: "tenant-1",
    client: "client-1",
    secret: secrets.client,
    authority: tokens.url
  }
})
const key = (token: string) => () => ({ token })

interface Case {
  readonly name: string
  readonly upstream: RawConfig
  readonly model: string
  readonly reply: Reply
  /** How the account signs in. */
  readonly account: () => RawConfig
  /** The path of a whole and of a streamed request. */
  readonly paths: readonly [string, string]
}

const at = (vendor: string, driver: string) => ({
  vendor,
  driver,
  ...(vendor === "azure" ? { resource: "res" } : { region: "eu-central-1" })
})
const twice = (path: string) => [path, path] as const
const vertex = (publisher: string) => `/v1/projects/project-1/locations/eu-central-1/publishers/${publisher}/models/`
const invoked = `/model/${encodeURIComponent(arn)}/invoke`

const cases: ReadonlyArray<Case> = [
  {
    name: "Mantle by chat completions",
    upstream: at("bedrock", "openai"),
    model: "gpt",
    reply: chat,
    account: aws,
    paths: twice("/v1/chat/completions")
  },
  {
    name: "Mantle by Responses",
    upstream: at("bedrock", "responses"),
    model: "gpt",
    reply: responses,
    account: aws,
    paths: twice("/v1/responses")
  },
  {
    name: "Mantle by Messages",
    upstream: at("bedrock", "messages"),
    model: "claude",
    reply: messages,
    account: aws,
    paths: twice("/anthropic/v1/messages")
  },
  {
    name: "InvokeModel",
    upstream: at("bedrock-runtime", "messages"),
    model: arn,
    reply: messages,
    account: aws,
    paths: [invoked, `${invoked}-with-response-stream`]
  },
  {
    name: "bedrock-runtime by chat completions",
    upstream: at("bedrock-runtime", "openai"),
    model: "gpt",
    reply: chat,
    account: aws,
    paths: twice("/openai/v1/chat/completions")
  },
  {
    name: "bedrock-runtime by Responses",
    upstream: at("bedrock-runtime", "responses"),
    model: "gpt",
    reply: responses,
    account: aws,
    paths: twice("/openai/v1/responses")
  },
  {
    name: "Gemini at Vertex AI",
    upstream: { ...at("vertex", "generate"), project: "project-1" },
    model: "gpt",
    reply: generate,
    account: google,
    paths: [`${vertex("google")}gpt:generateContent`, `${vertex("google")}gpt:streamGenerateContent?alt=sse`]
  },
  {
    name: "Claude at Vertex AI",
    upstream: { ...at("vertex", "messages"), project: "project-1" },
    model: "claude",
    reply: messages,
    account: google,
    paths: [`${vertex("anthropic")}claude:rawPredict`, `${vertex("anthropic")}claude:streamRawPredict`]
  },
  {
    name: "Azure by chat completions",
    upstream: at("azure", "openai"),
    model: "gpt",
    reply: chat,
    account: entra,
    paths: twice("/openai/v1/chat/completions")
  },
  {
    name: "Azure by Responses",
    upstream: at("azure", "responses"),
    model: "gpt",
    reply: responses,
    account: entra,
    paths: twice("/openai/v1/responses")
  }
]
const signed = cases.filter(({ account }) => account === aws)
const caseOf = (name: string): Case => cases.find((each) => each.name === name)!

/** The same servers by keys, which nothing renews. */
const keyed: ReadonlyArray<Case> = [
  ...["Mantle by chat completions", "Mantle by Messages", "InvokeModel", "bedrock-runtime by Responses"].map((
    name
  ) => ({
    ...caseOf(name),
    name: `${name} with an API key`,
    account: key("bedrock-api-key-1")
  })),
  ...["Azure by chat completions", "Azure by Responses"].map((name) => ({
    ...caseOf(name),
    name: `${name} with a key`,
    account: key("azure-key")
  }))
]

const start = async ({ account, model, upstream }: Case, rest: RawConfig = {}) => {
  gateway = await startGateway({
    upstreams: { cloud: { ...upstream, base_url: cloud.url, models: { m: model, gone: "gone" } } },
    accounts: [{ upstream: "cloud", ...account() }],
    ...rest
  }, { logger, logLevel: "Debug" })
}

const tools = {
  tools: [{ type: "function", function: { name: "look", parameters: { type: "object", properties: {} } } }]
}
const ask = (stream: boolean, model = "cloud/m", body: RawConfig = {}) =>
  send(gateway, { style: "chat", stream }, model, { body })
const answering = ({ reply }: Case, uses = false) => cloud.answer(({ isStream }) => reply(isStream, uses))

describe.each([...cases, ...keyed])("$name", (each) => {
  it("is asked at its own path with its own credential, whole and streamed, and calls tools", async () => {
    await start(each)
    answering(each)
    for (const stream of [false, true]) {
      const told = await ask(stream)
      assert.deepStrictEqual([told.status, told.text], [200, "Hello"], told.body)
    }
    assert.deepStrictEqual(cloud.requests.map((seen) => seen.path), [...each.paths])
    answering(each, true)
    for (const stream of [false, true]) {
      const told = await ask(stream, "cloud/m", tools)
      assert.include(told.body, "\"look\"")
      assert.include(told.body, "sea")
    }
  })

  it("says that it has no such model", async () => {
    await start(each)
    answering(each)
    const told = await ask(false, "cloud/gone")
    assert.isAtLeast(told.status, 400, told.body)
    assert.match(told.body, /model|deployment/i)
    assert.lengthOf(cloud.requests, 1)
  })
})

/** What operators see of the account. */
const accountOf = async (): Promise<RawConfig> => {
  const { items } = (await admin("GET", "/admin/accounts")).json as { readonly items: ReadonlyArray<RawConfig> }
  return items[0]!
}

describe.each(keyed)("$name", (each) => {
  it("that is wrong gets no reply, and goes in the header of its server alone", async () => {
    await start({ ...each, account: key("wrong-key") })
    answering(each)
    const told = await ask(false)
    assert.strictEqual(told.status, 503, told.body)
    const { headers } = cloud.requests[0]!
    const having = Object.entries(headers).filter(([, value]) => String(value).includes("wrong-key"))
    const header = each.name.startsWith("Azure")
      ? "api-key"
      : each.name.startsWith("Mantle by Messages")
      ? "x-api-key"
      : "authorization"
    assert.deepStrictEqual(having.map(([name]) => name), [header])
  })
})

describe("a token for another audience", () => {
  it("takes the account out after a new one is refused too", async () => {
    await start({ ...caseOf("Azure by Responses"), account: google })
    answering(caseOf("Azure by Responses"))
    const told = await ask(false)
    assert.strictEqual(told.status, 503, told.body)
    assert.lengthOf(cloud.requests, 2)
    const [first, second] = cloud.requests.map(({ headers }) => headers.authorization)
    assert.match(String(first), /^Bearer service-token-/)
    assert.notStrictEqual(first, second)
    assert.strictEqual((await accountOf())["health"], "out")
  })
})

describe("a count of tokens at Vertex AI", () => {
  it.each([
    ["Claude at Vertex AI", `${vertex("anthropic")}count-tokens:rawPredict`, { input_tokens: 7 }],
    ["Gemini at Vertex AI", `${vertex("google")}gpt:countTokens`, { totalTokens: 7 }]
  ])("is the server's, for %s", async (name, place, counted) => {
    await start(caseOf(name))
    cloud.answer(() => json(200, counted))
    const reply = await fetch(`${gateway.url}/v1/messages/count_tokens`, {
      method: "POST",
      headers: { "x-api-key": businessKey, "content-type": "application/json" },
      body: JSON.stringify({ model: "cloud/m", messages: [{ role: "user", content: "Hello" }] })
    })
    assert.deepStrictEqual([reply.status, await reply.json()], [200, { input_tokens: 7 }])
    assert.deepStrictEqual(cloud.requests.map(({ path }) => path), [place])
  })
})

describe.each(cases)("$name", (each) => {
  it("gets the request once more where the token has ended in mid-life", async () => {
    await start(each)
    answering(each)
    assert.strictEqual((await ask(false)).status, 200)
    const bearer = cloud.requests[0]!.headers.authorization?.replace(/^Bearer /, "") ?? ""
    ended.add(bearer)
    keys.set("CANARYAKID", { ...keys.get("CANARYAKID")!, isExpired: true })
    keys.set("CANARYNEXT", { secret: "canary/next", session: "canary.next", isExpired: false })
    profile("CANARYNEXT", "canary/next", "canary.next")
    answering(each)
    const told = await ask(true)
    assert.deepStrictEqual([told.status, told.text], [200, "Hello"], told.body)
    assert.lengthOf(cloud.requests, 2)
  })
})

describe.each(signed)("a signature at $name", (each) => {
  it("by a wrong key takes the account out, with what the source says", async () => {
    await start(each)
    profile("CANARYAKID", "wrong", "canary.session")
    answering(each)
    const told = await ask(false)
    assert.strictEqual(told.status, 503, told.body)
    assert.deepInclude(await accountOf(), {
      health: "out",
      health_reason: "its credential failed: aws: it still has the token that the upstream refused"
    })
  })

  it.each([-600_000, 600_000])(
    "is right at a server whose clock is %s ms ahead, after one repetition",
    async (skew) => {
      await start(each)
      cloud.skew = skew
      answering(each)
      for (const stream of [true, false]) {
        const told = await ask(stream)
        assert.deepStrictEqual([told.status, told.text], [200, "Hello"], told.body)
      }
      assert.lengthOf(cloud.requests, 3)
    }
  )
})

describe("an exception in the stream of InvokeModel", () => {
  it("before the first event is a failure of the upstream, and after it an error in the stream", async () => {
    const each = caseOf("InvokeModel")
    await start(each)
    const limited = exceptionFrame("throttlingException", "Too many tokens, please wait")
    cloud.answer(() => ({ pieces: [limited] }))
    const first = await ask(true)
    assert.deepStrictEqual([first.status, /Too many tokens/.test(first.body)], [429, true], first.body)
    const events = Messages.messageEvents([Messages.textBlock("Hello")]).slice(0, 4)
    await gateway.stop()
    await start(each)
    cloud.answer(() => ({
      pieces: [Messages.events(...events), exceptionFrame("modelStreamErrorException", "The model has failed")]
    }))
    const later = await ask(true)
    assert.strictEqual(later.status, 200)
    assert.include(later.body, "The model has failed")
  })
})

describe("the keys of AWS", () => {
  it("are in no reply, log line, record, capture, metric or export", async () => {
    const each = caseOf("InvokeModel")
    await start(each)
    await admin("PUT", "/admin/settings", { body: { captures: { enabled: true } } })
    answering(each)
    const told = [await ask(false), await ask(true)]
    // A server that repeats what it got.
    cloud.answer(({ seen }) => json(400, { message: `bad: ${JSON.stringify(seen.headers)}` }))
    told.push(await ask(false))
    const paths = [
      "accounts",
      "config",
      "config/export",
      "settings",
      "upstreams",
      "requests",
      "dev/captures",
      "changes"
    ]
    const replies = await Promise.all(
      [...paths.map((place) => `/admin/${place}`), "/metrics"].map((place) => admin("GET", place))
    )
    assert.deepStrictEqual(replies.map(({ status }) => status), replies.map(() => 200))
    const all = [...replies.map(({ text }) => text), ...told.map(({ body }) => body), ...lines].join("\n")
    for (const secret of ["CANARYAKID", "canary/secret", "canary.session"]) assert.notInclude(all, secret)
    // What they are of is shown, and captures have the stream as text.
    for (const shown of ["the profile work", "message_start"]) assert.include(all, shown)
  })

  it("are *** in exports and views where the configuration has them, and stay when an export is imported", async () => {
    const written = { from: "aws", key: "CANARYWRITTEN", secret: "canary/written" }
    keys.set(written.key, { secret: written.secret, session: undefined, isExpired: false })
    const each = { ...caseOf("InvokeModel"), account: () => ({ credential: written }) }
    await start(each)
    answering(each)
    assert.strictEqual((await ask(false)).status, 200)
    const exported = await admin("GET", "/admin/config/export")
    for (const shown of [exported, await admin("GET", "/admin/config"), await admin("GET", "/admin/accounts")]) {
      for (const secret of [written.key, written.secret]) assert.notInclude(shown.text, secret)
    }
    assert.include(JSON.stringify(exported.json), "\"key\":\"***\",\"secret\":\"***\"")
    assert.strictEqual((await admin("POST", "/admin/config/import", { body: exported.json })).status, 200)
    assert.strictEqual((await ask(true)).status, 200)
  })
})
