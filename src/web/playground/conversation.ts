/**
 * A conversation of the playground, independent of the API style.
 */
import { playedStyles } from "../../api.ts"
import type { Conversation } from "../../contracts.ts"

export const styles = playedStyles
export type Style = (typeof styles)[number]

export interface Call {
  readonly id: string
  readonly name: string
  /** JSON as text. */
  readonly arguments: string
}

export type Turn =
  | {
    readonly role: "user"
    readonly text: string
    /** A picture as a `data:` address. */
    readonly image?: string | undefined
  }
  | {
    readonly role: "assistant"
    readonly text: string
    readonly reasoning: string
    readonly calls: ReadonlyArray<Call>
  }
  | { readonly role: "tool"; readonly call: Call; readonly result: string }

/** A request of the playground, independent of the API style. */
export interface Prompt {
  readonly style: Style
  readonly model: string
  readonly system: string
  readonly turns: ReadonlyArray<Turn>
  readonly stream: boolean
  /** Declares the local tools. */
  readonly tools: boolean
  /** Other tools, whose calls are shown and not answered. */
  readonly ownTools: ReadonlyArray<ToolDeclaration>
  readonly temperature: number | undefined
  readonly maxTokens: number | undefined
  /** Asks for JSON, in the styles that can. */
  readonly json: boolean
}

export type ToolDeclaration = Conversation["tools"][number]

/** A reply, as far as it has arrived. */
export interface Answer {
  readonly text: string
  readonly reasoning: string
  readonly calls: ReadonlyArray<Call>
  /** Why it ended, in the style's term. */
  readonly finish: string | undefined
  /** The gateway's error message, with its code. */
  readonly error: string | undefined
  /** As the reply says. */
  readonly tokens: { readonly prompt: number; readonly completion: number } | undefined
}
