// What a caller of chat completions sees of each fault of the scripted upstreams: found out by asking the gateway, for the tables of
// docs/library.
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as TestClock from "effect/testing/TestClock"
import { GatewayTest } from "../src/testing/GatewayTest.ts"
import { OpenAiServer, type ScriptedAnswer } from "../src/testing/OpenAiServer.ts"
import { type FaultName, faultTable, usualCall } from "../src/testing/provider/faults.ts"

const text = "one two three"

const replyOf = (shown: string, finish: string | undefined): string =>
  shown === text ? "the whole reply" : `another text, with the finish reason \`${finish}\``

/** What a reply says to its reader, in a few words. */
const described = (status: number, body: string): string => {
  const errorIn = (json: string): string | undefined =>
    (JSON.parse(json) as { readonly error?: { readonly code?: string } }).error?.code
  if (status !== 200) return `${status} \`${errorIn(body)}\``
  if (!body.startsWith("data:") && !body.startsWith(":")) {
    const { choices: [choice] } = JSON.parse(body) as {
      readonly choices: readonly [{ readonly message: { readonly content: string }; readonly finish_reason: string }]
    }
    return replyOf(choice.message.content, choice.finish_reason)
  }
  const events = body.split("\n\n").filter((event) => event.startsWith("data: {")).map((event) => event.slice(6))
  const choices = events.flatMap((event) =>
    (JSON.parse(event) as {
      readonly choices?: ReadonlyArray<
        { readonly delta: { readonly content?: string }; readonly finish_reason?: string }
      >
    }).choices ?? []
  )
  const shown = choices.map(({ delta }) => delta.content ?? "").join("")
  const error = events.map(errorIn).find((code) => code !== undefined)
  if (error === undefined) return replyOf(shown, choices.findLast((choice) => choice.finish_reason)?.finish_reason)
  return shown === "" ? `an error event \`${error}\`` : `the text so far, then an error event \`${error}\``
}

const questionOf = (stream: boolean, content: string): RequestInit => ({
  method: "POST",
  headers: { authorization: "Bearer test-key", "content-type": "application/json" },
  body: JSON.stringify({ model: "upstream-chat", stream, messages: [{ role: "user", content }] })
})

/** Asks the gateway. Time passes only while the answer is waited for, so that no limit is met by chance. */
const ask = (stream: boolean, content: string) =>
  Effect.gen(function*() {
    const { fetch, url } = yield* GatewayTest
    const asking = yield* Effect.forkChild(Effect.promise(async () => {
      const response = await fetch(`${url}/v1/chat/completions`, questionOf(stream, content))
      return described(response.status, await response.text())
    }))
    while (asking.pollUnsafe() === undefined) {
      yield* Effect.promise(() => new Promise<void>((resolve) => setImmediate(resolve)))
      yield* TestClock.adjust("1 second")
    }
    return yield* Fiber.join(asking)
  })

const joined = (whole: string, streamed: string): string =>
  whole === streamed ? whole : `whole: ${whole}; streamed: ${streamed}`

/** Faults that concern a continued stream, which begins at the output limit. */
const continued: ReadonlySet<FaultName> = new Set(
  faultTable.map(({ name }) => name).filter((name) => usualCall(name) === "continue")
)

const outcomeOf = (name: FaultName): Promise<string> => {
  const content = continued.has(name) ? "!cut 2\n!say one two three" : "!say one two three"
  const asked = (stream: boolean) =>
    Effect.gen(function*() {
      const { upstream } = yield* GatewayTest
      // The server's fault stays, so that every try meets it.
      yield* upstream.fail({ name, times: 100, after: 1 })
      return yield* ask(stream, content)
    }).pipe(Effect.provide(GatewayTest.layer({ pace: 1 })))
  return Effect.all([asked(false), asked(true)]).pipe(
    Effect.map(([whole, streamed]) => joined(whole, streamed)),
    Effect.provide(TestClock.layer()),
    Effect.scoped,
    Effect.runPromise
  )
}

/** The faults of the scripted provider, each with what a caller with one account sees. */
export const faultOutcomes = async (): Promise<ReadonlyMap<FaultName, string>> => {
  const found = new Map<FaultName, string>()
  for (const { name } of faultTable) found.set(name, await outcomeOf(name))
  return found
}

const serverAnswers: Readonly<Record<string, ScriptedAnswer>> = {
  "`{ status: 400 }`": { status: 400 },
  "`{ status: 401 }`": { status: 401 },
  "`{ status: 404 }`": { status: 404 },
  "`{ status: 429 }`": { status: 429 },
  "`{ status: 500 }`": { status: 500 },
  "`{ status: 200, body: \"<html>\" }`": { status: 200, body: "<html>" },
  "`{ breaks: \"reset\" }`": { breaks: "reset" },
  "`{ text: \"one two\", breaks: \"reset\" }`": { text: "one two", breaks: "reset" },
  "`{ text: \"one two\", breaks: \"hang\" }`": { text: "one two", breaks: "hang" },
  "`{ text: \"\" }`": { text: "" }
}

const serverOutcome = (answer: ScriptedAnswer): Promise<string> => {
  // A short limit is for a silent server alone: a slow machine meets it otherwise.
  const timeouts = "breaks" in answer && answer.breaks === "hang" ? { silence: 0.2 } : {}
  const Gateway = Layer.unwrap(Effect.map(OpenAiServer, ({ baseUrl }) =>
    GatewayTest.layerServer({
      config: {
        accounts: [{ token: "a-key" }],
        upstream: { driver: "openai", base_url: baseUrl, timeouts }
      }
    })))
  const asked = (stream: boolean) =>
    Effect.gen(function*() {
      yield* (yield* OpenAiServer).reply(answer)
      const { url } = yield* GatewayTest
      return yield* Effect.promise(async () => {
        const response = await fetch(`${url}/v1/chat/completions`, questionOf(stream, "Hello"))
        return described(response.status, await response.text())
      })
    }).pipe(Effect.provide(Layer.provideMerge(Layer.fresh(Gateway), Layer.fresh(OpenAiServer.layer))))
  return Effect.all([asked(false), asked(true)]).pipe(
    Effect.map(([whole, streamed]) => joined(whole, streamed)),
    Effect.runPromise
  )
}

/** Answers of the scripted server, each with what a caller sees. */
export const serverOutcomes = (): Promise<ReadonlyArray<readonly [string, string]>> =>
  Promise.all(
    Object.entries(serverAnswers).map(async ([name, answer]) => [name, await serverOutcome(answer)] as const)
  )
