/**
 * The playground's state, kept while one looks at other pages.
 */
import * as Atom from "effect/reactivity/Atom"
import { registry } from "../state/registry.ts"
import type { Answer, Ask, Style, Turn } from "./conversation.ts"
import type { Frame, Sent } from "./send.ts"
import { send } from "./send.ts"
import { runTool } from "./tools.ts"

/** What is chosen and written. */
export interface Form {
  readonly style: Style
  readonly model: string
  /** The key's place in the list of keys. */
  readonly key: number
  readonly system: string
  readonly message: string
  readonly stream: boolean
  readonly tools: boolean
}

export const formAtom = Atom.keepAlive(
  Atom.make<Form>({
    style: "chat",
    model: "upstream-chat",
    key: 0,
    system: "",
    message: "",
    stream: true,
    tools: false
  })
)

/** Changes some of the form. */
export const setForm = (change: Partial<Form>): void => registry.update(formAtom, (form) => ({ ...form, ...change }))

/** A round with the gateway: what came over the wire. */
export interface Round {
  readonly number: number
  readonly status: number | undefined
  readonly requestId: string | undefined
  /** Added to while the reply comes in. */
  readonly frames: ReadonlyArray<Frame>
}

export interface Talk {
  readonly turns: ReadonlyArray<Turn>
  /** The reply that comes in. */
  readonly answer: Answer | undefined
  readonly rounds: ReadonlyArray<Round>
  readonly running: boolean
  /** The last reasoning. */
  readonly reasoning: string
  readonly failure: string | undefined
  /** Ended by the person at the page, or by the limit of rounds. */
  readonly note: "stopped" | "rounds" | undefined
  /** Why the last reply ended. */
  readonly finish: string | undefined
}

const fresh: Talk = {
  turns: [],
  answer: undefined,
  rounds: [],
  running: false,
  reasoning: "",
  failure: undefined,
  note: undefined,
  finish: undefined
}

export const talkAtom = Atom.keepAlive(Atom.make<Talk>(fresh))

const change = (part: Partial<Talk>): void => registry.update(talkAtom, (talk) => ({ ...talk, ...part }))

/** Rounds with local tools at most. */
const mostRounds = 8

let stop: AbortController | undefined

/** Ends the reply that comes in. */
export const stopTalk = (): void => stop?.abort()

/** Begins anew. */
export const newTalk = (): void => {
  stop?.abort()
  registry.set(talkAtom, fresh)
}

/** Takes up a conversation from elsewhere. */
export const openTalk = (form: Partial<Form>, turns: ReadonlyArray<Turn>): void => {
  stop?.abort()
  setForm(form)
  registry.set(talkAtom, { ...fresh, turns })
}

/** What would be asked now. */
export const askOf = (form: Form, turns: ReadonlyArray<Turn>): Ask => ({
  style: form.style,
  model: form.model,
  system: form.system.trim(),
  turns: form.message.trim() === "" ? turns : [...turns, { role: "user", text: form.message }],
  stream: form.stream,
  tools: form.tools
})

const asTurn = (answer: Answer): Turn => ({
  role: "assistant",
  text: answer.text,
  reasoning: answer.reasoning,
  calls: answer.calls
})

const roundOf = (number: number, { frames, requestId, status }: Sent): Round => ({ number, frames, requestId, status })

/** One request. What comes in is shown once a frame of the screen. */
const oneRound = async (ask: Ask, key: string, signal: AbortSignal, before: ReadonlyArray<Round>): Promise<Sent> => {
  let latest: Sent | undefined
  let asked = 0
  const draw = () => {
    asked = 0
    if (latest === undefined) return
    const { answer } = latest
    change({
      answer,
      rounds: [...before, roundOf(before.length + 1, latest)],
      ...(answer.reasoning === "" ? {} : { reasoning: answer.reasoning })
    })
  }
  try {
    const sent = await send(ask, key, signal, (next) => {
      latest = next
      if (asked === 0) asked = requestAnimationFrame(draw)
    })
    latest = sent
    return sent
  } finally {
    if (asked !== 0) cancelAnimationFrame(asked)
    draw()
  }
}

/** Sends what is written, and runs the local tools that the replies call, as long as they call some. */
export const startTalk = async (key: string, failureText: (failure: unknown) => string): Promise<void> => {
  const form = registry.get(formAtom)
  const first = askOf(form, registry.get(talkAtom).turns)
  if (registry.get(talkAtom).running || first.turns.length === 0) return
  const running = stop = new AbortController()
  const turns = [...first.turns]
  setForm({ message: "" })
  change({ ...fresh, turns: first.turns, running: true })
  try {
    for (let round = 1;; round++) {
      const { answer } = await oneRound(
        { ...first, turns: [...turns] },
        key,
        running.signal,
        registry.get(talkAtom).rounds
      )
      if (answer.error === undefined || answer.text !== "" || answer.calls.length > 0) {
        turns.push(asTurn(answer))
      }
      change({ turns: [...turns], answer: undefined, failure: answer.error, finish: answer.finish })
      if (answer.error !== undefined || !form.tools || answer.calls.length === 0) break
      if (round === mostRounds) {
        change({ note: "rounds" })
        break
      }
      for (const call of answer.calls) turns.push({ role: "tool", call, result: runTool(call) })
      change({ turns: [...turns] })
    }
  } catch (failure) {
    const { answer } = registry.get(talkAtom)
    if (running !== stop) return
    const kept = answer === undefined || (answer.text === "" && answer.reasoning === "" && answer.calls.length === 0)
      ? turns
      : [...turns, asTurn({ ...answer, calls: [] })]
    change({
      turns: kept,
      answer: undefined,
      ...(running.signal.aborted ? { note: "stopped" as const } : { failure: failureText(failure) })
    })
  } finally {
    if (running === stop) {
      stop = undefined
      change({ running: false })
    }
  }
}
