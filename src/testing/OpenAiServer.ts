/**
 * A scripted OpenAI-compatible server on a socket of 127.0.0.1, for tests of apps whose gateway has such an upstream.
 *
 * It answers `POST /v1/chat/completions` as the test orders, whole or streamed as the request asks, and `GET /v1/models` with the list that
 * the test sets. It reports every request that it receives.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { type Answer, chunk, frames, json, modelList, type SeenRequest, startOpenAiServer } from "./openAiSocket.ts"

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
  /** The reason of the end: `tool_calls` with calls, else `stop`. */
  readonly finish?: string | undefined
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

/** What the server does with a request for a completion. */
export type ScriptedAnswer = ScriptedReply | ScriptedRefusal

const pieces = (text: string | ReadonlyArray<string> = []): ReadonlyArray<string> =>
  typeof text === "string" ? [text] : text

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

const answerTo = ({ body }: SeenRequest, answer: ScriptedAnswer): Answer => {
  if ("status" in answer) {
    const { status } = answer
    return json(status, answer.body ?? { error: { message: `refused with ${status}`, type: "error" } }, {
      ...answer.headers
    })
  }
  const finish = answer.finish ?? ((answer.calls ?? []).length > 0 ? "tool_calls" : "stop")
  return body["stream"] === true ? streamOf(answer, finish) : wholeOf(answer, finish)
}

/** A scripted OpenAI-compatible server. */
export class OpenAiServer extends Context.Service<OpenAiServer, {
  /** The address with the version prefix: the `base_url` of an upstream with the driver `openai`. */
  readonly baseUrl: string
  /**
   * Orders what the next requests for completions get, in their order; later ones get the last. A function decides by the request. Without
   * an order the reply is the text `Hello`.
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
      (server) =>
        OpenAiServer.of({
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
    )
  )
}
