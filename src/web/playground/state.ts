/**
 * The playground's state, which is kept while other pages are shown.
 */
import * as Atom from "effect/reactivity/Atom"
import { failureText } from "../state/failure.ts"
import { registry } from "../state/registry.ts"
import type { Answer, Prompt, Style, Turn } from "./conversation.ts"
import { type Frame, send, type Sent } from "./send.ts"
import { declaredTools, localTools, runTool } from "./tools.ts"

/** The playground's form. */
export interface Form {
  readonly style: Style
  readonly model: string
  /** The key's index in the list of keys. */
  readonly key: number
  readonly system: string
  readonly message: string
  readonly stream: boolean
  readonly tools: boolean
  /** Declarations of other tools, as JSON text. */
  readonly ownTools: string
  readonly temperature: string
  readonly maxTokens: string
  readonly json: boolean
  /** A picture beside the message, as a `data:` address; empty without one. */
  readonly image: string
}

export const formAtom = Atom.keepAlive(
  Atom.make<Form>({
    style: "chat",
    model: "upstream-chat",
    key: 0,
    system: "",
    message: "",
    stream: true,
    tools: false,
    ownTools: "",
    temperature: "",
    maxTokens: "",
    json: false,
    image: ""
  })
)

/** Changes fields of the form. */
export const setForm = (change: Partial<Form>): void => registry.update(formAtom, (form) => ({ ...form, ...change }))

/** A request to the gateway, with the frames of its reply. */
export interface Round {
  readonly number: number
  readonly status: number | undefined
  readonly requestId: string | undefined
  /** Grows while the reply arrives. */
  readonly frames: ReadonlyArray<Frame>
}

/** How fast the last reply came. */
export interface Figures {
  /** Milliseconds up to the first event, and to the end. */
  readonly first: number
  readonly whole: number
  readonly tokens: Answer["tokens"]
}

const figuresOf = ({ tokens }: Answer, frames: ReadonlyArray<Frame>): Figures | undefined => {
  const [first, last] = [frames[0], frames.at(-1)]
  return first === undefined || last === undefined ? undefined : { first: first.at, whole: last.at, tokens }
}

export interface Conversation {
  readonly turns: ReadonlyArray<Turn>
  /** The arriving reply. */
  readonly answer: Answer | undefined
  readonly rounds: ReadonlyArray<Round>
  readonly running: boolean
  /** The last reasoning. */
  readonly reasoning: string
  /** With the status and the code. */
  readonly failure: string | undefined
  readonly figures: Figures | undefined
  /** Stopped by the person at the page, or by the limit of rounds. */
  readonly note: "stopped" | "rounds" | undefined
  /** Why the last reply ended. */
  readonly finish: string | undefined
}

const fresh: Conversation = {
  turns: [],
  answer: undefined,
  rounds: [],
  running: false,
  reasoning: "",
  failure: undefined,
  figures: undefined,
  note: undefined,
  finish: undefined
}

export const conversationAtom = Atom.keepAlive(Atom.make<Conversation>(fresh))

const change = (part: Partial<Conversation>): void =>
  registry.update(conversationAtom, (conversation) => ({ ...conversation, ...part }))

/** The limit of requests that follow one another because of calls of local tools. */
const maxRounds = 8

let running: AbortController | undefined

/** Stops the arriving reply. */
export const stopReply = (): void => running?.abort()

/** Clears the conversation. */
export const newConversation = (): void => {
  running?.abort()
  registry.set(conversationAtom, fresh)
}

/** Opens a conversation. */
export const openConversation = (form: Partial<Form>, turns: ReadonlyArray<Turn>): void => {
  running?.abort()
  setForm(form)
  registry.set(conversationAtom, { ...fresh, turns })
}

/** The number in a field; `undefined` if the field is empty or has no number. */
const numberIn = (text: string): number | undefined =>
  text.trim() === "" || !Number.isFinite(Number(text)) ? undefined : Number(text)

/** The request that the form would send. */
export const promptOf = (form: Form, turns: ReadonlyArray<Turn>): Prompt => ({
  style: form.style,
  model: form.model,
  system: form.system.trim(),
  turns: form.message.trim() === ""
    ? turns
    : [...turns, { role: "user", text: form.message, ...(form.image === "" ? {} : { image: form.image }) }],
  stream: form.stream,
  tools: form.tools,
  ownTools: declaredTools(form.ownTools) ?? [],
  temperature: numberIn(form.temperature),
  maxTokens: numberIn(form.maxTokens),
  // The messages style has no such mode.
  json: form.json && form.style !== "messages"
})

const asTurn = (answer: Answer): Turn => ({
  role: "assistant",
  text: answer.text,
  reasoning: answer.reasoning,
  calls: answer.calls
})

const roundOf = (number: number, { frames, requestId, status }: Sent): Round => ({ number, frames, requestId, status })

/** Sends one request. Redraws at most once per frame of the screen. */
const oneRound = async (
  prompt: Prompt,
  key: string,
  signal: AbortSignal,
  before: ReadonlyArray<Round>,
  rehearsal: string | undefined
): Promise<Sent> => {
  let latest: Sent | undefined
  let frame = 0
  const draw = () => {
    frame = 0
    if (latest === undefined) return
    const { answer } = latest
    change({
      answer,
      rounds: [...before, roundOf(before.length + 1, latest)],
      ...(answer.reasoning === "" ? {} : { reasoning: answer.reasoning })
    })
  }
  try {
    const sent = await send(prompt, key, signal, (next) => {
      latest = next
      if (frame === 0) frame = requestAnimationFrame(draw)
    }, rehearsal)
    latest = sent
    return sent
  } finally {
    if (frame !== 0) cancelAnimationFrame(frame)
    draw()
  }
}

/** Sends the form, its first request as a rehearsal if there is a token for one. While replies call local tools, runs these tools and sends their results, up to 8 rounds. */
export const sendForm = async (key: string, rehearsal?: string): Promise<void> => {
  const form = registry.get(formAtom)
  const first = promptOf(form, registry.get(conversationAtom).turns)
  if (registry.get(conversationAtom).running || first.turns.length === 0) return
  const own = running = new AbortController()
  const turns = [...first.turns]
  setForm({ message: "", image: "" })
  change({ ...fresh, turns: first.turns, running: true })
  try {
    for (let round = 1;; round++) {
      const { rounds } = registry.get(conversationAtom)
      const { answer, frames, status } = await oneRound(
        { ...first, turns: [...turns] },
        key,
        own.signal,
        rounds,
        round === 1 ? rehearsal : undefined
      )
      if (answer.error === undefined || answer.text !== "" || answer.calls.length > 0) turns.push(asTurn(answer))
      change({
        turns: [...turns],
        answer: undefined,
        failure: answer.error === undefined ? undefined : `${status ?? ""} ${answer.error}`.trim(),
        finish: answer.finish,
        figures: figuresOf(answer, frames)
      })
      if (answer.error !== undefined || !form.tools || answer.calls.length === 0) break
      if (!answer.calls.every(({ name }) => localTools.some((tool) => tool.name === name))) break
      if (round === maxRounds) {
        change({ note: "rounds" })
        break
      }
      for (const call of answer.calls) turns.push({ role: "tool", call, result: runTool(call) })
      change({ turns: [...turns] })
    }
  } catch (failure) {
    const { answer } = registry.get(conversationAtom)
    if (own !== running) return
    const kept = answer === undefined || (answer.text === "" && answer.reasoning === "" && answer.calls.length === 0)
      ? turns
      : [...turns, asTurn({ ...answer, calls: [] })]
    change({
      turns: kept,
      answer: undefined,
      ...(own.signal.aborted ? { note: "stopped" as const } : { failure: failureText(failure) })
    })
  } finally {
    if (own === running) {
      running = undefined
      change({ running: false })
    }
  }
}
