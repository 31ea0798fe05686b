/**
 * A scripted OpenAI-compatible server on a socket of 127.0.0.1, for tests of apps whose gateway has such an upstream.
 *
 * It answers `POST /v1/chat/completions` and `POST /v1/responses` as the test orders, whole or streamed as the request asks, and
 * `GET /v1/models` with the list that the test sets. On the Responses API it also compacts. It reports every request that it receives.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { isRecord } from "../domain/json.ts"
import { type Answer, chunk, frames, json, modelList, type SeenRequest, startOpenAiServer } from "./openAiSocket.ts"
import * as responses from "./responsesSocket.ts"

/** A call of a tool in a reply. */
export interface ScriptedCall {
  readonly name: string
  readonly arguments: object
}

/** A reply. Of a list of texts each is an event of a stream. */
export interface ScriptedReply {
  readonly text?: string | ReadonlyArray<string> | undefined
  readonly reasoning?: string | ReadonlyArray<string> | undefined
  readonly calls?: ReadonlyArray<ScriptedCall> | undefined
  /** The reason of the end: `tool_calls` with calls, else `stop`. On the Responses API `length` and `content_filter` leave it incomplete. */
  readonly finish?: string | undefined
  /** On the Responses API: the seal of the reasoning, or of the compaction where the request asks for one. */
  readonly seal?: string | undefined
  /** On the Responses API: the reply fails after what it has said. */
  readonly fails?: { readonly code: string; readonly message: string } | undefined
  /** Token counts, by the server's names. Ten tokens each without it. */
  readonly usage?: object | undefined
  /** What follows the last event in place of the end: a broken connection, or silence until the gateway leaves. */
  readonly breaks?: "reset" | "hang" | undefined
}

/** A refusal. */
export interface ScriptedRefusal {
  readonly status: number
  /** The body: text as it is, else JSON. An error of that status without it. */
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>> | undefined
}

/** What the server does with a request for a completion, a response or a compaction. */
export type ScriptedAnswer = ScriptedReply | ScriptedRefusal

const pieces = (text: string | ReadonlyArray<string> = []): ReadonlyArray<string> =>
  typeof text === "string" ? [text] : text

const textOf = (text: string | ReadonlyArray<string>): string => pieces(text).join("")

const usual = { prompt_tokens: 10, completion_tokens: 10, total_tokens: 20 }

const callsOf = ({ calls = [] }: ScriptedReply) =>
  calls.map(({ arguments: given, name }, index) => ({
    index,
    id: `call_${index + 1}`,
    type: "function",
    function: { name, arguments: JSON.stringify(given) }
  }))

const streamOf = (reply: ScriptedReply, finish: string): Answer => ({
  pieces: [
    frames(
      chunk({ role: "assistant", content: "" }),
      ...pieces(reply.reasoning).map((text) => chunk({ reasoning_content: text })),
      ...pieces(reply.text).map((text) => chunk({ content: text })),
      ...callsOf(reply).map((call) => chunk({ tool_calls: [call] })),
      ...reply.breaks === undefined
        ? [chunk({}, finish), { ...chunk({}), choices: [], usage: reply.usage ?? usual }, "[DONE]"]
        : []
    )
  ],
  after: reply.breaks ?? "end"
})

const wholeOf = (reply: ScriptedReply, finish: string): Answer => {
  const calls = callsOf(reply).map(({ index: _, ...call }) => call)
  const message = {
    role: "assistant",
    content: reply.text === undefined ? null : pieces(reply.text).join(""),
    ...(reply.reasoning === undefined ? {} : { reasoning_content: pieces(reply.reasoning).join("") }),
    ...(calls.length === 0 ? {} : { tool_calls: calls })
  }
  const body = {
    id: "chatcmpl-1",
    object: "chat.completion",
    created: 1,
    model: "m",
    choices: [{ index: 0, message, finish_reason: finish }],
    usage: reply.usage ?? usual
  }
  return reply.breaks === undefined ? json(200, body) : { after: reply.breaks, headless: true }
}

const lastItem = ({ input }: SeenRequest["body"]): unknown => Array.isArray(input) ? input.at(-1) : undefined

/** What the reply says, as items of the Responses API. */
const itemsOf = (reply: ScriptedReply): ReadonlyArray<responses.Fields> => {
  const seal = reply.seal === undefined ? {} : { encrypted_content: reply.seal }
  return [
    ...(reply.reasoning === undefined && reply.seal === undefined ? [] : [
      {
        id: "rs_1",
        type: "reasoning",
        summary: reply.reasoning === undefined ? [] : [{ type: "summary_text", text: textOf(reply.reasoning) }],
        ...seal
      }
    ]),
    ...(reply.text === undefined ? [] : [responses.messageItem(textOf(reply.text))]),
    ...(reply.calls ?? []).map(({ arguments: given, name }, index) =>
      responses.callItem(name, given, { id: `fc_${index + 1}`, call_id: `call_${index + 1}` })
    )
  ]
}

const usualTokens = { input_tokens: 10, output_tokens: 10, total_tokens: 20 }

/** The answer of the Responses API. A request for a compaction gets one. */
const responseTo = ({ body, path }: SeenRequest, reply: ScriptedReply): Answer => {
  const compaction = { id: "cmp_1", type: "compaction", encrypted_content: reply.seal ?? "sealed" }
  const usage = reply.usage ?? usualTokens
  if (path.endsWith("/compact")) {
    const users = Array.isArray(body["input"])
      ? body["input"].filter((item) => isRecord(item) && item["role"] === "user")
      : []
    const output = [...users, compaction]
    return json(200, { id: "resp_1", object: "response.compaction", created_at: 1, output, usage })
  }
  const last = lastItem(body)
  const asksForCompaction = isRecord(last) && last["type"] === "compaction_trigger"
  const reason = reply.finish === "length" ? "max_output_tokens" : reply.finish
  const isCut = reason === "max_output_tokens" || reason === "content_filter"
  const response = responses.responseOf(asksForCompaction ? [compaction] : itemsOf(reply), {
    usage,
    ...(isCut ? { status: "incomplete", incomplete_details: { reason } } : {}),
    ...(reply.fails === undefined ? {} : { status: "failed", error: reply.fails })
  })
  if (body["stream"] !== true) {
    return reply.breaks === undefined ? responses.whole(response) : { after: reply.breaks, headless: true }
  }
  const said = [reply.text, reply.reasoning].flatMap((text) => text === undefined ? [] : [pieces(text)])
  const cut = (text: string) => said.find((each) => each.join("") === text) ?? [text]
  const events = responses.eventsOf(response, cut)
  return {
    pieces: [responses.events(...(reply.breaks === undefined ? events : events.slice(0, -1)))],
    after: reply.breaks ?? "end"
  }
}

const answerTo = (request: SeenRequest, answer: ScriptedAnswer): Answer => {
  const { body, path } = request
  if ("status" in answer) {
    const { status } = answer
    return json(status, answer.body ?? { error: { message: `refused with ${status}`, type: "error" } }, {
      ...answer.headers
    })
  }
  if (/\/responses(?:\/compact)?$/.test(path)) return responseTo(request, answer)
  const finish = answer.finish ?? ((answer.calls ?? []).length > 0 ? "tool_calls" : "stop")
  return body["stream"] === true ? streamOf(answer, finish) : wholeOf(answer, finish)
}

/** A scripted OpenAI-compatible server. */
export class OpenAiServer extends Context.Service<OpenAiServer, {
  /** The address with the version prefix: the `base_url` of an upstream with the driver `openai` or `responses`. */
  readonly baseUrl: string
  /**
   * Orders what the next requests for completions, responses and compactions get, in their order; later ones get the last. A function
   * decides by the request. Without an order the reply is the text `Hello`.
   */
  readonly reply: (
    ...answers:
      | readonly [ScriptedAnswer, ...Array<ScriptedAnswer>]
      | readonly [(request: SeenRequest) => ScriptedAnswer]
  ) => Effect.Effect<void>
  /** Sets the models that the server lists. Without it, it has no list. */
  readonly models: (...ids: ReadonlyArray<string>) => Effect.Effect<void>
  /** The requests since the last order, the latest 10,000 at most, without those for the list of models. */
  readonly requests: Effect.Effect<ReadonlyArray<SeenRequest>>
  /** Waits until the requests satisfy `predicate`, which is checked after every change. */
  readonly until: (predicate: (requests: ReadonlyArray<SeenRequest>) => boolean) => Effect.Effect<void>
}>()("model-gateway/testing/OpenAiServer") {
  /** A separate server, which listens on a free port while the layer lives. */
  static readonly layer: Layer.Layer<OpenAiServer> = Layer.effect(
    OpenAiServer,
    Effect.map(
      Effect.acquireRelease(Effect.promise(() => startOpenAiServer()), (server) => Effect.promise(server.stop)),
      (server) => {
        server.answer((request) => answerTo(request, { text: "Hello" }))
        return OpenAiServer.of({
          baseUrl: server.baseUrl,
          reply: (...answers) =>
            Effect.sync(() =>
              server.answer((request, index) => {
                const answer = answers[Math.min(index, answers.length - 1)]!
                return answerTo(request, typeof answer === "function" ? answer(request) : answer)
              })
            ),
          models: (...ids) => Effect.sync(() => server.list(() => modelList(...ids))),
          requests: Effect.sync(() => server.requests),
          until: (predicate) =>
            Effect.callback((resume) => {
              const look = () => {
                if (!predicate(server.requests)) return
                stop()
                resume(Effect.void)
              }
              const stop = server.onChange(look)
              look()
              return Effect.sync(stop)
            })
        })
      }
    )
  )
}
