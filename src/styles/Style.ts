/**
 * A client API style as one value: all that the gateway knows of it beside its code. The folder of a style exports it from
 * `style.ts`, and `styles.ts` lists them.
 */
import type * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import type { ToolDeclaration } from "../domain/Conversation.ts"

/** A request for one reply, in no style's words. */
export interface Ask {
  readonly model: string
  readonly text: string
  readonly stream: boolean
  readonly tools: ReadonlyArray<ToolDeclaration>
}

/** An ask as a `POST` of a style: its path and its body. */
export type Asked = readonly [path: string, body: unknown]

/** What the GenAI conventions call what a style's requests do. */
export type Operation = "chat" | "generate_content" | "embeddings"

/** A style. */
export interface Style {
  /** Its contract. Each of its endpoints has an edge, which says who may call and how a failure is worded. */
  readonly group: HttpApiGroup.Constraint
  /** What its SDKs add to their base address by themselves. */
  readonly basePaths: ReadonlyArray<string>
  readonly operation: Operation
  /** Words an ask, where the style has replies of a model: so are saved samples played. */
  readonly ask?: (ask: Ask) => Asked
}

/** A list of styles. */
export type Styles = readonly [Style, ...ReadonlyArray<Style>]

/** The groups of styles, in their order. */
export const groupsOf = <const S extends Styles>(styles: S) =>
  styles.map(({ group }) => group) as unknown as { readonly [K in keyof S]: S[K]["group"] }
