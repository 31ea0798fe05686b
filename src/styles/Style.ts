/**
 * A client API style as a value: what the gateway knows of it beside its code. `styles.ts` lists the styles.
 */
import type * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import { type ProtocolFacts, protocols, type SpokenStyle } from "../contracts/names.ts"

/** Names of the styles with replies of a model, each of a contract; saved samples can be replayed in them. */
export const playedStyles: ReadonlyArray<SpokenStyle> = Object.values(protocols).flatMap(({ style }) => style ?? [])

export type PlayedStyle = SpokenStyle

/** The path below the gateway's address at which clients of a style ask a model for a reply. */
export const replyPath = (style: PlayedStyle, model: string, stream: boolean): string =>
  Object.values<ProtocolFacts>(protocols).find((each) => each.style === style)!.path!(model, stream)

/** The style of most clients, which examples have. */
export const usualStyle: PlayedStyle = "chat"

/** Names of the styles whose requests are recorded. `carried` is the name of the relayed endpoints in records and in the API documents. */
export const recordedStyles: ReadonlyArray<string> = [...playedStyles, "embeddings", "carried"]

/** The operation of a style's requests, in the terms of OpenTelemetry's GenAI conventions. */
export type Operation = "chat" | "generate_content" | "embeddings" | "carried"

/** A style. */
export interface Style {
  /** Its contract. Each endpoint has a middleware that states who may call and how errors are formatted. */
  readonly group: HttpApiGroup.Constraint
  /** The paths that its SDKs append to their base URL. */
  readonly basePaths: ReadonlyArray<string>
  readonly operation: Operation
}

/** A list of styles. */
export type Styles = readonly [Style, ...ReadonlyArray<Style>]

/** The groups of styles, in their order. */
export const groupsOf = <const S extends Styles>(styles: S) =>
  styles.map(({ group }) => group) as { readonly [K in keyof S]: S[K]["group"] }
