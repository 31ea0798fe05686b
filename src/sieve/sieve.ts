/**
 * The sieve: turns the tool calls that a model writes as text into structured calls, while the text streams.
 */
import type { ToolDeclaration } from "../domain/Conversation.ts"
import { TextDelta } from "../domain/ReplyEvent.ts"
import { Engine, type Sieve } from "./engine.ts"
import { FencedReply } from "./fencedReply.ts"
import type { Form } from "./form.ts"
import { forms } from "./forms/table.ts"
import { grammarOf } from "./openings.ts"

export type { Sieve }

/** Options of a sieve. */
export interface SieveOptions {
  /** The declared tools. Forms that could be an answer are calls only for these; their schemas type the values of arguments. */
  readonly tools: ReadonlyArray<ToolDeclaration>
  /** Returns the id of the call with this index; called once per call. */
  readonly callId: (index: number) => string
}

/** The sieve over these forms. */
export const sieveOf = (forms: ReadonlyArray<Form>) => {
  const grammar = grammarOf(forms)
  const infos = new Set(grammar.words.fence.map(([word]) => word))
  // A fence within a longer one is code.
  const fencedGrammar = grammarOf(forms.filter(({ opening }) => opening.at !== "fence"))
  return (options: SieveOptions): () => Sieve => {
    const tools = new Map(options.tools.map((tool) => [tool.name, tool]))
    if (tools.size === 0) return passThrough
    const fenced = () => new FencedReply(tools, infos, () => new Engine(fencedGrammar, tools, String))
    return () => new Engine(grammar, tools, options.callId, fenced())
  }
}

const passThrough = (): Sieve => ({
  push(text, out) {
    if (text !== "") out.push(TextDelta(text))
  },
  passes: () => true,
  held: 0,
  interrupt: () => undefined,
  end: () => undefined
})

/**
 * The sieve as a transducer of a reply's text. It never throws. Its events do not depend on how the text is cut. Without declared tools
 * all text passes unchanged.
 */
export const sieve: (options: SieveOptions) => () => Sieve = sieveOf(forms)
