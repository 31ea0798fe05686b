/**
 * Which node this is, for what is of one node alone where several are one gateway.
 */
import * as Effect from "effect/Effect"
import { Nodes } from "../cluster/nodes/Nodes.ts"

/** The id of this node where several share a store; `undefined` elsewhere. */
export const nodeName: Effect.Effect<() => string | undefined, never, Nodes> = Effect.map(
  Nodes,
  (nodes) => () => nodes.store() === undefined ? undefined : nodes.id
)
