/**
 * A conversation of the playground, in no style's words.
 */

import { playedStyles } from "../../api.ts"

export const styles = playedStyles
export type Style = (typeof styles)[number]

export interface Call {
  readonly id: string
  readonly name: string
  /** JSON as text. */
  readonly arguments: string
}

export type Turn =
  | { readonly role: "user"; readonly text: string }
  | {
    readonly role: "assistant"
    readonly text: string
    readonly reasoning: string
    readonly calls: ReadonlyArray<Call>
  }
  | { readonly role: "tool"; readonly call: Call; readonly result: string }

/** What is asked for. */
export interface Ask {
  readonly style: Style
  readonly model: string
  readonly system: string
  readonly turns: ReadonlyArray<Turn>
  readonly stream: boolean
  /** The local tools are declared. */
  readonly tools: boolean
}

/** What of a reply has come so far. */
export interface Answer {
  readonly text: string
  readonly reasoning: string
  readonly calls: ReadonlyArray<Call>
  /** Why it ended, in the style's word. */
  readonly finish: string | undefined
  /** What went wrong, in the gateway's words. */
  readonly error: string | undefined
}

/** A value of JSON as an object to look into; empty where it is none. */
export const record = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? value as Record<string, unknown> : {}

export const list = (value: unknown): ReadonlyArray<unknown> => Array.isArray(value) ? value : []

export const string = (value: unknown): string => typeof value === "string" ? value : ""

/** JSON, or `undefined`. */
export const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
