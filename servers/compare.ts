/**
 * `npm run compare [-- GATEWAY …]`: asks several gateways the same questions in front of the same scripted server, and writes what each does into
 * docs/migrate/comparison.md. It measures behaviour, not speed.
 *
 * Each gateway runs as its own documents say, with one OpenAI-compatible server and no options besides its address.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import path from "node:path"
import { peers } from "../bench/peers.ts"
import { table } from "../scripts/docs/table.ts"
import { type RawConfig, sha256Hex } from "../src/config/json.ts"
import { keyId } from "../src/domain/identity.ts"
import { businessKey, startGateway } from "../test/support/gateway.ts"
import { type Answer, chunk, frames, json, type OpenAiServer, startOpenAiServer } from "../test/support/openaiServer.ts"
import { type Api, ask, type Reply, type Sending } from "./apis.ts"
import { cache, install } from "./install.ts"
import { freePort, sleep, start, until } from "./processes.ts"
import { programs, versionOf } from "./versions.ts"

/** A gateway that runs in front of the server. */
interface Gateway {
  readonly url: string
  readonly key: string
  readonly model: string
  readonly headers?: Readonly<Record<string, string>>
  readonly stop: () => Promise<void>
}

interface Candidate {
  readonly name: string
  readonly version: string
  /** The APIs of callers that it has for chat. */
  readonly apis: ReadonlyArray<Api>
  readonly start: (server: OpenAiServer) => Promise<Gateway>
  /** Starts it with a limit of `limit` requests a minute; absent if it has no such limit. */
  readonly startLimited?: (server: OpenAiServer) => Promise<Gateway>
}

/** The requests a minute of the question about limits. */
const limit = 50

const root = path.join(import.meta.dirname, "..")

const startOwn = async (server: OpenAiServer, config: RawConfig = {}): Promise<Gateway> => {
  const upstream = { driver: "openai", base_url: server.baseUrl, models: { bench: "bench" } }
  const gateway = await startGateway({ upstream, ...config })
  return { url: gateway.url, key: businessKey, model: "bench", stop: gateway.stop }
}

const own: Candidate = {
  name: "this gateway",
  version: (JSON.parse(readFileSync(path.join(root, "package.json"), "utf8")) as { version: string }).version,
  apis: ["chat", "Responses", "messages", "content generation"],
  start: startOwn,
  startLimited: (server) =>
    startOwn(server, {
      key_records: { [keyId(businessKey, sha256Hex)]: { limits: [{ window: "minute", requests: limit }] } }
    })
}

const startLiteLlm = async (server: OpenAiServer, params: object = {}, more: object = {}): Promise<Gateway> => {
  const folder = await install("LiteLLM")
  const key = "sk-compare"
  const config = path.join(cache, "compare-litellm.yaml")
  const served = { model: "openai/bench", api_base: server.baseUrl, api_key: "sk-bench", ...params }
  writeFileSync(
    config,
    JSON.stringify({
      model_list: [{ model_name: "bench", litellm_params: served }],
      general_settings: { master_key: key },
      ...more
    })
  )
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const { kill } = await start({
    command: path.join(folder, "bin/litellm"),
    args: ["--config", config, "--host", "127.0.0.1", "--port", String(port)],
    // It imports modules of the folder two levels above the current one.
    cwd: path.join(folder, "bin"),
    env: { LITELLM_LOCAL_MODEL_COST_MAP: "True" },
    log: path.join(cache, "compare-litellm.log"),
    ready: `${url}/health/liveliness`
  })
  return { url, key, model: "bench", stop: kill }
}

const litellm: Candidate = {
  name: "LiteLLM",
  version: versionOf("LiteLLM"),
  // For its other APIs it asks the server's Responses, which the scripted one does not have.
  apis: ["chat"],
  start: (server) => startLiteLlm(server),
  // Limits of its keys need a database; those of a model do not.
  startLimited: (server) =>
    startLiteLlm(server, { rpm: limit }, {
      router_settings: { optional_pre_call_checks: ["enforce_model_rate_limits"] }
    })
}

/** The packages of npm that `npm run bench -- peers` measures. */
const packages = peers.filter(({ name }) => "npm" in programs[name]).map((peer): Candidate => {
  const name = peer.package
  return {
    name,
    version: versionOf(peer.name),
    apis: [name.endsWith("claude-code-router") ? "messages" : "chat"],
    start: async (server) => {
      const folder = await install(peer.name)
      const port = await freePort()
      const place = { folder, port, base: server.baseUrl, chat: `${server.baseUrl}/chat/completions` }
      const url = `http://127.0.0.1:${port}`
      const target = peer.target?.(place)
      const { kill } = await start({
        command: process.execPath,
        args: peer.prepare(place).args,
        env: { HOME: folder },
        log: path.join(folder, "log"),
        ready: url
      })
      return {
        url,
        key: "bench-key",
        model: target?.model ?? "bench",
        ...(target?.headers === undefined ? {} : { headers: target.headers }),
        stop: kill
      }
    }
  }
})

/** Milliseconds after which a reply hangs, and within which a server should learn that a client has left. */
const hangs = 8_000

const pieces = ["One ", "two ", "three."]
const usage = {
  prompt_tokens: 1_000,
  completion_tokens: 500,
  total_tokens: 1_500,
  prompt_tokens_details: { cached_tokens: 800 },
  completion_tokens_details: { reasoning_tokens: 200 }
}
const text = pieces.map((content) => chunk({ content }))
const whole = json(200, {
  id: "chatcmpl-1",
  object: "chat.completion",
  created: 1,
  model: "bench",
  choices: [{ index: 0, message: { role: "assistant", content: pieces.join("") }, finish_reason: "stop" }],
  usage
})
const regular: Answer = {
  pieces: [
    frames(
      chunk({ role: "assistant", content: "" }),
      ...text,
      chunk({}, "stop"),
      { ...chunk({}), choices: [], usage },
      "[DONE]"
    )
  ]
}

/** How a stream breaks after its text. */
const faults: Readonly<Record<string, Answer>> = {
  "the connection breaks": { pieces: [frames(...text)], after: "reset" },
  "the stream ends without a reason": { pieces: [frames(...text)] },
  "the stream ends with `[DONE]` and without a reason": { pieces: [frames(...text, "[DONE]")] },
  "an error stands in the stream": {
    pieces: [frames(...text, { error: { message: "out of memory", type: "server_error", code: 500 } })]
  },
  "an event is no JSON": { pieces: [frames(...text), "data: {\"choices\": [{\"delta\"\n\n", frames("[DONE]")] },
  "a call of a tool is cut off": {
    pieces: [
      frames(
        chunk({
          tool_calls: [{ index: 0, id: "call_1", type: "function", function: { name: "free", arguments: "{\"a\": " } }]
        }),
        "[DONE]"
      )
    ]
  }
}

const question = { turns: [{ user: "Hello" }], maxTokens: 100 }
const withTool = {
  ...question,
  tools: [{ name: "free", parameters: { type: "object", properties: { a: { type: "string" } } } }]
}

const sendingOf = ({ headers, key, model, url }: Gateway, api: Api, streamed: boolean): Sending => ({
  url,
  key,
  model,
  api,
  streamed,
  ...(headers === undefined ? {} : { headers })
})

/** What a client makes of a broken stream. */
const seenIn = (reply: Reply | "hung"): string =>
  reply === "hung"
    ? "hangs"
    : reply.error !== undefined || reply.status >= 400
    ? "reported"
    : reply.finish === undefined
    ? "ends without a reason"
    : /length|max_/i.test(reply.finish)
    ? `cut off (${reply.finish})`
    : `**looks finished** (${reply.finish})`

const hungAfter = async (asked: Promise<Reply>, controller: AbortController): Promise<Reply | "hung"> => {
  const first = await Promise.race([asked, sleep(hangs).then(() => "hung" as const)])
  if (first === "hung") {
    controller.abort()
    await asked.catch(() => undefined)
  }
  return first
}

/** Rejects unless a reply without faults arrives by every API, so that no answer below is the refusal of a wrong question. */
const regularReplies = async (server: OpenAiServer, gateway: Gateway, apis: ReadonlyArray<Api>) => {
  for (const api of apis) {
    server.answer(() => regular)
    const { finish, raw, status, text: got } = await ask(sendingOf(gateway, api, true), question)
    if (status !== 200 || finish === undefined || got !== pieces.join("")) {
      throw new Error(`a reply without faults does not arrive by ${api}: ${status} ${raw.slice(0, 200)}`)
    }
  }
}

const brokenStreams = async (server: OpenAiServer, gateway: Gateway, apis: ReadonlyArray<Api>) => {
  const answers: Record<string, string> = {}
  for (const [fault, answer] of Object.entries(faults)) {
    for (const api of apis) {
      server.answer(() => answer)
      const controller = new AbortController()
      const asked = ask(
        { ...sendingOf(gateway, api, true), signal: controller.signal },
        fault.includes("call") ? withTool : question
      )
      const reply = await hungAfter(asked, controller).catch((error: unknown) => String(error))
      answers[`${fault}, ${api}`] = typeof reply === "string" && reply !== "hung"
        ? "reported"
        : seenIn(reply as Reply | "hung")
    }
  }
  return answers
}

const leaving = async (server: OpenAiServer, gateway: Gateway, api: Api) => {
  const answers: Record<string, string> = {}
  const cases: ReadonlyArray<readonly [string, Answer]> = [
    ["before the first byte", { after: "hang", headless: true }],
    ["in the middle", { pieces: [frames(...text)], after: "hang" }]
  ]
  for (const [when, answer] of cases) {
    server.answer(() => answer)
    const controller = new AbortController()
    const asked = ask({ ...sendingOf(gateway, api, true), signal: controller.signal }, question).catch(() => undefined)
    await until(hangs, () => server.requests.length > 0)
    await sleep(300)
    controller.abort()
    await asked
    const took = await until(
      hangs,
      () => server.requests.length > 0 && server.requests.every(({ outcome }) => outcome === "aborted")
    )
    answers[`a client leaves ${when}: the server learns it`] = took === undefined
      ? `not within ${hangs / 1000} s`
      : `within ${Math.max(0.1, took / 1000).toFixed(1)} s`
  }
  return answers
}

const bills = async (server: OpenAiServer, gateway: Gateway, apis: ReadonlyArray<Api>) => {
  const answers: Record<string, string> = {}
  for (const api of apis) {
    for (const streamed of [false, true]) {
      server.answer(({ body }) => body["stream"] === true ? regular : whole)
      const { raw, usage: got } = await ask(sendingOf(gateway, api, streamed), question)
      const isRight = got?.input === usage.prompt_tokens && got.output === usage.completion_tokens
      const isCached = raw.includes("800")
      answers[`tokens of a reply ${streamed ? "streamed" : "whole"}, ${api}`] = got === undefined
        ? "absent"
        : `${isRight ? "right" : `**${got.input} and ${got.output}** for 1000 and 500`}${
          isCached ? "" : ", without the cached ones"
        }`
    }
  }
  return answers
}

/** Fields of the vendor's request, each with a value. */
const fields: Readonly<Record<string, unknown>> = {
  temperature: 0.5,
  top_p: 0.5,
  seed: 7,
  stop: ["END"],
  n: 2,
  presence_penalty: 0.5,
  frequency_penalty: 0.5,
  logit_bias: { "50": 1 },
  logprobs: true,
  top_logprobs: 2,
  max_completion_tokens: 50,
  response_format: { type: "json_object" },
  parallel_tool_calls: false,
  reasoning_effort: "low",
  verbosity: "low",
  service_tier: "flex",
  store: true,
  metadata: { a: "b" },
  user: "someone",
  safety_identifier: "someone",
  prompt_cache_key: "key",
  prompt_cache_retention: "24h",
  prediction: { type: "content", content: "x" },
  modalities: ["text", "audio"],
  web_search_options: { search_context_size: "low" },
  chat_template_kwargs: { enable_thinking: false },
  min_p: 0.1,
  repetition_penalty: 1.1,
  guided_json: { type: "object" },
  not_known_to_anyone: { a: 1 }
}

const keptFields = async (server: OpenAiServer, gateway: Gateway) => {
  const lost: Array<string> = []
  const refused: Array<string> = []
  let kept = 0
  for (const [name, value] of Object.entries(fields)) {
    server.answer(({ body }) => body["stream"] === true ? regular : whole)
    const extra = { [name]: value, ...(name === "top_logprobs" ? { logprobs: true } : {}) }
    const asked = name === "parallel_tool_calls" ? withTool : { turns: question.turns }
    const { status } = await ask(sendingOf(gateway, "chat", false), { ...asked, fields: extra })
    const seen = server.requests[0]?.body[name]
    if (JSON.stringify(seen) === JSON.stringify(value)) kept++
    else if (status >= 400) refused.push(name)
    else lost.push(name)
  }
  const list = (names: ReadonlyArray<string>) =>
    names.length === 0 ? "" : `: ${names.map((name) => `\`${name}\``).join(", ")}`
  return {
    [`fields of ${Object.keys(fields).length} that reach the server as they are`]: String(kept),
    "fields that are refused": `${refused.length}${list(refused)}`,
    "fields that do not arrive, without an error": `${lost.length}${list(lost)}`
  }
}

const samePrefix = async (server: OpenAiServer, gateway: Gateway, api: Api) => {
  const turns: Array<{ user: string } | { assistant: string }> = []
  const sent: Array<string> = []
  for (let turn = 0; turn < 20; turn++) {
    turns.push({ user: `Question ${turn}` })
    server.answer(() => regular)
    await ask(sendingOf(gateway, api, true), { turns, tools: withTool.tools })
    const messages = server.requests[0]?.body["messages"]
    sent.push(JSON.stringify(messages ?? "").slice(0, -1))
    turns.push({ assistant: `Answer ${turn}` })
  }
  const same = sent.slice(1).filter((later, i) => later.startsWith(sent[i]!)).length
  return { "turns of 19 whose messages begin with those of the turn before": String(same) }
}

const canaries = async (server: OpenAiServer, gateway: Gateway, api: Api) => {
  const words = Array.from({ length: 50 }, (_, i) => `canary-${String(i).padStart(2, "0")}`)
  server.answer(({ body }) => {
    const word = /canary-\d\d/.exec(JSON.stringify(body))?.[0] ?? "none"
    return {
      pieces: [
        frames(chunk({ content: word })),
        sleep(50),
        frames(chunk({ content: word }), chunk({}, "stop"), "[DONE]")
      ]
    }
  })
  const seen = await Promise.all(words.map(async (word, i) => {
    const controller = new AbortController()
    if (i % 5 === 0) setTimeout(() => controller.abort(), 30)
    const reply = await ask({ ...sendingOf(gateway, api, true), signal: controller.signal }, {
      turns: [{ user: word }]
    }).catch(() => undefined)
    return (reply?.raw.match(/canary-\d\d/g) ?? []).every((found) => found === word)
  }))
  return {
    "callers of 50 together, ten of whom leave, that see another's words": String(seen.filter((isOwn) => !isOwn).length)
  }
}

/** Whether a limit holds for requests that come together. */
const heldLimit = async (server: OpenAiServer, { apis: [api = "chat"], startLimited }: Candidate) => {
  const asked = `requests of 200 together that pass a limit of ${limit} a minute`
  if (startLimited === undefined) return { [asked]: "it has no such limit" }
  const gateway = await startLimited(server)
  try {
    server.answer(() => whole)
    const replies = await Promise.all(
      Array.from({ length: 200 }, () => ask(sendingOf(gateway, api, false), question).catch(() => undefined))
    )
    const passed = replies.filter((reply) => reply?.status === 200).length
    const refused = replies.filter((reply) => reply?.status === 429).length
    const others = replies.length - passed - refused
    return { [asked]: others === 0 ? String(passed) : `${passed}, and ${others} fail in another way` }
  } finally {
    await gateway.stop()
  }
}

const named = process.argv.slice(2)
const candidates = [own, litellm, ...packages].filter(({ name }) => named.length === 0 || named.includes(name))
const columns: Array<readonly [head: string, answers: Readonly<Record<string, string>>]> = []
const notes: Array<string> = []
for (const candidate of candidates) {
  const { apis, name, version } = candidate
  const server = await startOpenAiServer()
  server.list(() => json(200, { object: "list", data: [{ id: "bench", object: "model" }] }))
  try {
    const gateway = await candidate.start(server)
    try {
      const [first = "chat"] = apis
      await regularReplies(server, gateway, apis)
      const answers: Record<string, string> = {}
      for (
        const part of [
          () => brokenStreams(server, gateway, apis),
          () => leaving(server, gateway, first),
          () => bills(server, gateway, apis),
          ...(first === "chat" ? [() => keptFields(server, gateway)] : []),
          () => samePrefix(server, gateway, first),
          () => canaries(server, gateway, first),
          () => heldLimit(server, candidate)
        ]
      ) {
        Object.assign(
          answers,
          await part().catch((error: unknown) => ({ [`not asked in full by ${name}`]: String(error).slice(0, 120) }))
        )
      }
      columns.push([`${name} ${version}`, answers])
    } finally {
      await gateway.stop()
    }
  } catch (error) {
    notes.push(`${name} ${version} is left out: ${String(error).replaceAll(/\s+/g, " ").slice(-300)}`)
  } finally {
    await server.stop()
  }
  process.stdout.write(`${name} ${version} is asked\n`)
}
const questions = [...new Set(columns.flatMap(([, answers]) => Object.keys(answers)))]
const shown = table(
  ["", ...columns.map(([head]) => head)],
  questions.map((asked) => [asked, ...columns.map(([, answers]) => answers[asked] ?? "—")])
)
process.stdout.write(`\n${shown}\n\n${notes.join("\n")}\n`)
if (named.length === 0) {
  const page = path.join(root, "docs/migrate/comparison.md")
  const before = existsSync(page) ? readFileSync(page, "utf8") : ""
  const written = `<!-- made by \`npm run compare\` -->\n\nOn ${
    new Date().toISOString().slice(0, 10)
  }:\n\n${shown}\n\n${notes.map((note) => `- ${note}\n`).join("")}<!-- end -->`
  writeFileSync(page, before.replace(/<!-- made by `npm run compare` -->[^]*?<!-- end -->/, () => written))
}
