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

/** A gate that a part of a reply waits for. */
const makeGate = () => Promise.withResolvers<void>()

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
    readonly first: ReturnType<typeof makeGate>
    readonly last: ReturnType<typeof makeGate>
    readonly tries: Array<Try>
  }>()

  /** The keys that an upstream has refused. */
  const refused = new Set<string | undefined>()

  const answer = (upstream: string) => (request: SeenRequest): Answer => {
    const { first, last, planned, tries } = running.get(idOf(request))!
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
          first.promise,
          JSON.stringify({ id: "chatcmpl-1", object: "chat.completion", created: 1, model: "m", choices, usage })
        ]
      }
    }
    return {
      headers: unshared,
      pieces: [
        first.promise,
        frames(chunk({ role: "assistant", content: "one" }), { ...chunk({}), choices: [], usage }),
        last.promise,
        frames(chunk({ content: " two" }), chunk({}, "stop"), { ...chunk({}), choices: [], usage }, "[DONE]")
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

  /** Begins a request. The returned function takes it to its end, with `meanwhile` before its last event. */
  const begin = async (planned: Planned, comes: "first" | "behind" | "to its upstream" = "first") => {
    const id = `asked-${++count}`
    const [first, last] = [makeGate(), makeGate()]
    const tries: Array<Try> = []
    running.set(id, { planned, first, last, tries })
    const at = clock.currentTimeMillisUnsafe()
    const caller = new AbortController()
    const reply = fetch(`${gateway().url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${planned.key}`, "x-request-id": id },
      body: JSON.stringify({
        model: planned.model,
        stream: planned.end !== "whole",
        messages: [{ role: "user", content: id }]
      }),
      signal: caller.signal
    })
    if (comes === "behind") await until(id, "waits", ({ state }) => state === "queued")
    if (comes === "to its upstream") await isSent(id)
    return async (meanwhile: () => Promise<unknown> = () => Promise.resolve()): Promise<Done> => {
      const isServed = planned.end !== "broken" && planned.end !== "refused"
      const queued = clock.currentTimeMillisUnsafe() - at
      if (isServed) {
        await isSent(id)
        clock.move(planned.first)
        first.resolve()
      }
      const response = await reply
      const read = response.body!.getReader()
      if (isServed && planned.end !== "whole") {
        let text = ""
        // One that waits gets comments in the meantime.
        while (!text.includes("one")) {
          const { done, value } = await read.read()
          assert.isFalse(done, text)
          text += new TextDecoder().decode(value)
        }
        await until(id, "has begun its reply", ({ first_event_ms }) => first_event_ms !== null)
        clock.move(planned.rest)
        await meanwhile()
      }
      if (planned.end === "left") caller.abort()
      else {
        last.resolve()
        while (!(await read.read()).done);
      }
      await until(id, "has ended", ({ outcome }) => outcome !== "open")
      last.resolve()
      running.delete(id)
      return { ...planned, id, at, queued, tries, duration: clock.currentTimeMillisUnsafe() - at }
    }
  }

  return {
    /** Plays requests one after the other. Those that wait begin while the one before them runs. */
    play: async (plan: ReadonlyArray<Planned>): Promise<ReadonlyArray<Done>> => {
      const done: Array<Done> = []
      let next: Awaited<ReturnType<typeof begin>> | undefined
      for (const [place, planned] of plan.entries()) {
        if (next === undefined) clock.move(planned.pause)
        const finish = next ?? await begin(planned)
        next = undefined
        const behind = plan[place + 1]
        done.push(
          await finish(async () => {
            if (behind?.wait === undefined) return
            next = await begin(behind, "behind")
            clock.move(behind.wait)
          })
        )
      }
      return done
    },
    /** Begins requests, which stay at their upstreams; those with a `wait` stay in the queue. The returned function takes all to their end. */
    hold: async (plan: ReadonlyArray<Planned>): Promise<() => Promise<void>> => {
      const held: Array<Awaited<ReturnType<typeof begin>>> = []
      for (const planned of plan) {
        held.push(await begin(planned, planned.wait === undefined ? "to its upstream" : "behind"))
      }
      return async () => {
        for (const finish of held) await finish()
      }
    }
  }
}
