/**
 * Traffic of a fixed seed through a gateway whose clock stands still between its steps. When each request began, waited, had its first event
 * and ended is therefore known, and so are its tokens, its tries and its cost.
 */
import { assert } from "@effect/vitest"
import * as fc from "fast-check"
import { adminKey, type RunningGateway } from "../support/gateway.ts"
import type { MovedClock } from "../support/movedClock.ts"
import {
  type Answer,
  chunk,
  frames,
  json,
  modelList,
  type OpenAiServer,
  type SeenRequest
} from "../support/openaiServer.ts"
import { untilValue } from "../support/until.ts"

/** A request of the plan. Times are milliseconds. */
export interface Planned {
  readonly key: string
  /** The name that the caller asks for. */
  readonly model: string
  /** A reply in a stream or whole, no reply from any try, a bad request, or a caller that leaves after the first event. */
  readonly end: "streamed" | "whole" | "broken" | "refused" | "left"
  /** From when the upstream has the request to its first event, from there to the end, and from the request before. */
  readonly first: number
  readonly rest: number
  readonly pause: number
  readonly prompt: number
  readonly cached: number
  readonly completion: number
  /** The statuses that upstreams refuse it with, one after the other, before one answers. */
  readonly refusals: ReadonlyArray<number>
  /** How long it waits for the slot of the request before, which ends so much later. */
  readonly wait?: number
  /** What is asked, in place of the request's id, and the words of a streamed reply, which come at equal distances; two by default. */
  readonly question?: string
  readonly words?: ReadonlyArray<string>
  /** Further headers, such as those of agents. */
  readonly headers?: Readonly<Record<string, string>>
}

/** A try at an upstream. */
interface Try {
  readonly upstream: string
  readonly failed: boolean
}

/** A request that has ended. Times are milliseconds, and begin at `at`, which is in Unix milliseconds. */
export interface Done extends Planned {
  readonly id: string
  readonly at: number
  readonly queued: number
  readonly duration: number
  readonly tries: ReadonlyArray<Try>
}

const between = (min: number, max: number) => fc.noBias(fc.integer({ min, max }))

/** The ends of requests; most are well. */
const ends = [
  ...Array.from({ length: 10 }, () => "streamed" as const),
  ...Array.from({ length: 3 }, () => "whole" as const),
  "broken",
  "refused",
  "left"
] as const

/** Requests of some keys for some models, by a fixed seed; `changes` has what some of them are by their places. */
export const planOf = (
  { changes = {}, count, seed, ...of }: {
    readonly count: number
    readonly seed: number
    readonly keys: ReadonlyArray<string>
    readonly models: ReadonlyArray<string>
    /** The longest pause between two, in milliseconds. */
    readonly pause: number
    readonly changes?: Readonly<Record<number, Partial<Planned>>>
  }
): ReadonlyArray<Planned> =>
  fc.sample(
    fc.record({
      key: fc.constantFrom(...of.keys),
      model: fc.constantFrom(...of.models),
      end: fc.constantFrom(...ends),
      first: between(40, 3_000),
      rest: between(100, 6_000),
      pause: between(Math.ceil(of.pause / 2), of.pause),
      prompt: between(2_000, 90_000),
      cached: between(0, 2_000),
      completion: between(100, 9_000),
      refusals: fc.constant([])
    }),
    { numRuns: count, seed }
  ).map((planned, place) => ({ ...planned, ...changes[place] }))

const idOf = ({ body }: SeenRequest): string =>
  (body["messages"] as ReadonlyArray<{ readonly content: string }>).at(-1)!.content

/** A connection that the server closes while it is idle would be a try that no server sees. */
const unshared = { connection: "close" }

const wordsOf = ({ words = ["one", " two"] }: Planned): ReadonlyArray<string> => words

/** The words of a reply that have arrived. */
const arrived = (text: string): string =>
  [...text.matchAll(/"content":"([^"]*)"/g)].map(([, content]) => content).join("")

/** A gate that a part of a reply waits for. */
const makeGate = () => Promise.withResolvers<void>()

/** A request that has begun. */
interface Begun {
  readonly answerFirst: () => Promise<void>
  readonly finish: (meanwhile?: () => Promise<unknown>) => Promise<Done>
  readonly leave: () => void
}

/** Plays a plan. `gateway` is the one that runs. */
export const makeTraffic = (
  { clock, gateway, models, servers }: {
    readonly clock: MovedClock
    readonly gateway: () => RunningGateway
    readonly servers: Readonly<Record<string, OpenAiServer>>
    /** The models that each server lists. */
    readonly models: Readonly<Record<string, ReadonlyArray<string>>>
  }
) => {
  const running = new Map<string, {
    readonly planned: Planned
    /** One for each word of the reply. */
    readonly gates: ReadonlyArray<ReturnType<typeof makeGate>>
    readonly tries: Array<Try>
  }>()

  /** The keys that an upstream has refused. */
  const refused = new Set<string | undefined>()

  const answer = (upstream: string) => (request: SeenRequest): Answer => {
    const { gates, planned, tries } = running.get(idOf(request))!
    const { cached, completion, end, prompt, refusals } = planned
    const refusal = end === "broken" ? 500 : end === "refused" ? 400 : refusals[tries.length]
    tries.push({ upstream, failed: refusal !== undefined })
    if (refusal !== undefined) {
      if (refusal === 401) refused.add(request.key)
      // A long wait is the account's where the server names its quota.
      const type = refusal === 429 ? "insufficient_quota" : "invalid_request_error"
      return json(refusal, { error: { message: `no: ${refusal}`, type } }, {
        ...unshared,
        ...refusal === 429 ? { "retry-after": "7200" } : {}
      })
    }
    const usage = {
      prompt_tokens: prompt,
      completion_tokens: completion,
      total_tokens: prompt + completion,
      prompt_tokens_details: { cached_tokens: cached }
    }
    if (end === "whole") {
      const message = { role: "assistant", content: "whole" }
      const choices = [{ index: 0, message, finish_reason: "stop" }]
      return {
        headers: { "content-type": "application/json", ...unshared },
        pieces: [
          gates[0]!.promise,
          JSON.stringify({ id: "chatcmpl-1", object: "chat.completion", created: 1, model: "m", choices, usage })
        ]
      }
    }
    const counted = { ...chunk({}), choices: [], usage }
    return {
      headers: unshared,
      pieces: [
        ...wordsOf(planned).flatMap((content, index) => [
          gates[index]!.promise,
          index === 0
            ? frames(chunk({ role: "assistant", content }), counted)
            : frames(chunk({ content }))
        ]),
        frames(chunk({}, "stop"), counted, "[DONE]")
      ]
    }
  }
  for (const [name, server] of Object.entries(servers)) {
    server.answer(answer(name))
    server.list(({ key }) => refused.has(key) ? json(401, {}, unshared) : modelList(...models[name]!))
  }

  const record = async (id: string): Promise<Readonly<Record<string, unknown>> | undefined> => {
    const reply = await fetch(`${gateway().url}/admin/requests?limit=6`, {
      headers: { authorization: `Bearer ${adminKey}` }
    })
    const { items } = await reply.json() as { readonly items: ReadonlyArray<Readonly<Record<string, unknown>>> }
    return items.find((item) => item["request_id"] === id)
  }
  const until = (id: string, what: string, holds: (item: Readonly<Record<string, unknown>>) => boolean) =>
    untilValue(`${id} ${what}`, () => record(id), (item) => item !== undefined && holds(item))

  let count = 0

  const isSent = (id: string) =>
    untilValue(`${id} is sent`, () => running.get(id)!.tries.some(({ failed }) => !failed), (sent) => sent)

  /**
   * Begins a request. The returned functions take it to its first event, and from there to its end, with `meanwhile` before its last event.
   */
  const begin = async (planned: Planned, comes: "first" | "behind" | "to its upstream" = "first") => {
    const id = `asked-${++count}`
    const words = wordsOf(planned)
    const gates = words.map(makeGate)
    const tries: Array<Try> = []
    const question = planned.question ?? id
    running.set(question, { planned, gates, tries })
    const at = clock.currentTimeMillisUnsafe()
    const caller = new AbortController()
    const reply = fetch(`${gateway().url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${planned.key}`, "x-request-id": id, ...planned.headers },
      body: JSON.stringify({
        model: planned.model,
        stream: planned.end !== "whole",
        messages: [{ role: "user", content: question }]
      }),
      signal: caller.signal
    })
    if (comes === "behind") await until(id, "waits", ({ state }) => state === "queued")
    if (comes === "to its upstream") await isSent(question)
    const isServed = planned.end !== "broken" && planned.end !== "refused"
    let queued = 0
    let text = ""
    let read: ReadableStreamDefaultReader<Uint8Array>
    /** Reads the reply until so many words are here. One that waits gets comments in the meantime. */
    const readUntil = async (many: number) => {
      const wanted = words.slice(0, many).join("")
      while (!arrived(text).startsWith(wanted)) {
        const { done, value } = await read.read()
        assert.isFalse(done, text)
        text += new TextDecoder().decode(value)
      }
    }
    const answerFirst = async (): Promise<void> => {
      queued = clock.currentTimeMillisUnsafe() - at
      if (isServed) {
        await isSent(question)
        clock.move(planned.first)
        gates[0]!.resolve()
      }
      read = (await reply).body!.getReader()
      if (!isServed || planned.end === "whole") return
      await readUntil(1)
      await until(id, "has begun its reply", ({ first_event_ms }) => first_event_ms !== null)
    }
    const finish = async (meanwhile: () => Promise<unknown> = () => Promise.resolve()): Promise<Done> => {
      if (isServed && planned.end !== "whole") {
        for (const [index] of words.entries()) {
          if (index === 0) continue
          clock.move(planned.rest / (words.length - 1))
          if (index === words.length - 1) await meanwhile()
          if (planned.end === "left") break
          gates[index]!.resolve()
          await readUntil(index + 1)
        }
      }
      if (planned.end === "left") caller.abort()
      else while (!(await read.read()).done);
      await until(id, "has ended", ({ outcome }) => outcome !== "open")
      for (const gate of gates) gate.resolve()
      running.delete(question)
      return { ...planned, id, at, queued, tries, duration: clock.currentTimeMillisUnsafe() - at }
    }
    const leave = () => caller.abort()
    return { answerFirst, finish, leave }
  }

  const whole = async ({ answerFirst, finish }: Begun, meanwhile?: () => Promise<unknown>): Promise<Done> => {
    await answerFirst()
    return finish(meanwhile)
  }

  return {
    /** Plays requests one after the other. Those that wait begin while the one before them runs. */
    play: async (plan: ReadonlyArray<Planned>): Promise<ReadonlyArray<Done>> => {
      const done: Array<Done> = []
      let next: Begun | undefined
      for (const [place, planned] of plan.entries()) {
        if (next === undefined) clock.move(planned.pause)
        const begun = next ?? await begin(planned)
        next = undefined
        const behind = plan[place + 1]
        done.push(
          await whole(begun, async () => {
            if (behind?.wait === undefined) return
            next = await begin(behind, "behind")
            clock.move(behind.wait)
          })
        )
      }
      return done
    },
    /** Begins a request, and takes it to its first event. With the returned function its caller leaves. */
    run: async (planned: Planned): Promise<() => void> => {
      const { answerFirst, leave } = await begin(planned)
      await answerFirst()
      return leave
    },
    /** Begins requests, which stay at their upstreams; those with a `wait` stay in the queue. The returned function takes all to their end. */
    hold: async (plan: ReadonlyArray<Planned>): Promise<() => Promise<void>> => {
      const held: Array<Begun> = []
      for (const planned of plan) {
        held.push(await begin(planned, planned.wait === undefined ? "to its upstream" : "behind"))
      }
      return async () => {
        for (const begun of held) await whole(begun)
      }
    }
  }
}
