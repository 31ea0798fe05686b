/**
 * Recordings of each node shown as one list: ids that name the node, and lists merged over all nodes.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as SchemaTransformation from "effect/SchemaTransformation"
import type { GatewayError } from "../domain/GatewayError.ts"
import { Nodes } from "./nodes/Nodes.ts"
import { longestReply } from "./nodes/peers.ts"
import { answerQuery, askAll, askOne, noQuestion, type Query } from "./nodes/Query.ts"

/** An item of a list, as JSON. */
export interface NodeItem {
  /** Unix milliseconds; lists are merged by it. */
  readonly at: number
  /** The node's own number of the item; the next page goes on from it. */
  readonly place: number
  readonly json: string
}

const NodeItem = Schema.Struct({ at: Schema.Finite, place: Schema.Int, json: Schema.String })

/** An item and the node that has it. */
export interface PlacedItem extends NodeItem {
  readonly node: string
}

/** The lists of all nodes, merged. */
interface MergedItems<H> {
  /** Newest first. */
  readonly items: ReadonlyArray<PlacedItem>
  /** The `head` of each node's list. */
  readonly heads: ReadonlyMap<string, H>
  /** Nodes that did not answer. */
  readonly missing: ReadonlyArray<string>
}

/** The list of one node: its items, newest first, and what is said about the list as a whole. */
export interface NodeList<H> {
  readonly head: H
  readonly items: ReadonlyArray<NodeItem>
}

/** The list as lines: as many of the newest items as fit into an answer. Compact JSON has no line breaks. */
const writeList = ({ head, items }: NodeList<string>): string => {
  const lines = [head]
  let length = head.length
  for (const { at, json, place } of items) {
    const line = `${at} ${place} ${json}`
    length += line.length + 1
    if (length > longestReply) break
    lines.push(line)
  }
  return lines.join("\n")
}

const readList = (text: string): NodeList<string> => {
  const [head = "", ...lines] = text.split("\n")
  return {
    head,
    items: lines.map((line) => {
      const first = line.indexOf(" ")
      const second = line.indexOf(" ", first + 1)
      return {
        at: Number(line.slice(0, first)),
        place: Number(line.slice(first + 1, second)),
        json: line.slice(second + 1)
      }
    })
  }
}

/** A list with a head as the text that nodes send each other. */
const listOf = <H>(head: Schema.Codec<H, string>): Schema.Codec<NodeList<H>, string> =>
  Schema.String.pipe(
    Schema.decodeTo(
      Schema.Struct({ head, items: Schema.Array(NodeItem) }),
      SchemaTransformation.transform({ decode: readList, encode: writeList })
    )
  )

/** Reads the values of items. Returns the nodes with items of another form too, which are left out. */
export const itemReader = <A>(item: Schema.Codec<A, unknown>) => {
  const read = Schema.decodeUnknownOption(Schema.fromJsonString(item))
  return (
    items: ReadonlyArray<PlacedItem>
  ): { readonly values: ReadonlyArray<A>; readonly unread: Iterable<string> } => {
    const unread = new Set<string>()
    const values = items.flatMap(({ json, node }) => {
      const value = read(json)
      if (Option.isSome(value)) return [value.value]
      unread.add(node)
      return []
    })
    return { values, unread }
  }
}

/** Merges lists, newest first. The order within each list is kept, so a wrong clock moves a node's items as a whole. */
function* mergeItems(lists: ReadonlyMap<string, ReadonlyArray<NodeItem>>): Generator<PlacedItem> {
  const heads = Array.from(lists, ([node, items]) => ({ node, items, next: 0 }))
  for (;;) {
    let newest: typeof heads[number] | undefined
    for (const list of heads) {
      const item = list.items[list.next]
      const best = newest?.items[newest.next]
      if (item !== undefined && (best === undefined || item.at > best.at)) newest = list
    }
    if (newest === undefined) return
    yield { ...newest.items[newest.next++]!, node: newest.node }
  }
}

/** A kind of lists: the question to each node, and the head of its list. */
interface ListKind<Q, H> {
  readonly name: string
  readonly question: Schema.Codec<Q, string>
  readonly head: Schema.Codec<H, string>
}

/** Ids and lists over all nodes. */
export interface NodeItems {
  /** The id of this node; `undefined` unless several nodes share a store. */
  readonly node: () => string | undefined
  /** An id of this node as callers see it. */
  readonly named: (id: string) => string
  /** The other node that an id names, and the id there; `undefined` for an id of this node. */
  readonly elsewhere: (id: string) => { readonly node: string; readonly id: string } | undefined
  /** An id of this node without the node. */
  readonly own: (id: string) => string
  /** The reply field `nodes_missing`; absent unless several nodes share a store. */
  readonly missingNodes: (missing: ReadonlyArray<string>) => { readonly nodes_missing?: ReadonlyArray<string> }
  /** Makes the merged list of a kind; `local` returns the list of this node, and answers the questions of the others. */
  readonly merged: <Q, H>(
    kind: ListKind<Q, H>,
    local: (question: Q) => Effect.Effect<NodeList<H>, GatewayError>
  ) => (question: Q) => Effect.Effect<MergedItems<H>, GatewayError>
  /**
   * Makes the lookup of one item at the node that its id names; `undefined` if that node has gone. `local` returns the item of
   * this node; `question` makes the question for it from the node's own id.
   */
  readonly one: <Q, A>(
    query: Query<Q, A>,
    local: (question: Q) => Effect.Effect<A, GatewayError>
  ) => (id: string, question: (own: string) => Q) => Effect.Effect<A | undefined, GatewayError>
  /** Makes an action at all nodes; it returns the reply field `nodes_missing`. */
  readonly everywhere: (
    name: string,
    local: Effect.Effect<void>
  ) => Effect.Effect<{ readonly nodes_missing?: ReadonlyArray<string> }>
  readonly peers: Nodes["Service"]["peers"]
}

/** The id of this node; `undefined` unless several nodes share a store. */
export const nodeName: Effect.Effect<() => string | undefined, never, Nodes> = Effect.map(
  Nodes,
  (nodes) => () => nodes.store() === undefined ? undefined : nodes.id
)

export const makeNodeItems: Effect.Effect<NodeItems, never, Nodes> = Effect.map(
  Effect.all([Nodes, nodeName]),
  ([nodes, node]) => {
    const split = (id: string) => {
      const colon = id.indexOf(":")
      return node() === undefined || colon === -1 ? undefined : { node: id.slice(0, colon), id: id.slice(colon + 1) }
    }
    const elsewhere: NodeItems["elsewhere"] = (id) => {
      const at = split(id)
      return at === undefined || at.node === nodes.id ? undefined : at
    }
    const own: NodeItems["own"] = (id) => split(id)?.id ?? id
    const missingNodes: NodeItems["missingNodes"] = (missing) => node() === undefined ? {} : { nodes_missing: missing }
    return {
      node,
      named: (id) => node() === undefined ? id : `${nodes.id}:${id}`,
      elsewhere,
      own,
      missingNodes,
      one: <Q, A>(query: Query<Q, A>, local: (question: Q) => Effect.Effect<A, GatewayError>) => {
        answerQuery(nodes.peers, query, local)
        const ask = askOne(nodes.peers, query)
        return (id: string, question: (own: string) => Q) => {
          const at = elsewhere(id)
          return at === undefined ? local(question(own(id))) : ask(at.node, question(at.id))
        }
      },
      everywhere: (name, local) => {
        const query: Query<"", ""> = { name, question: noQuestion, answer: noQuestion }
        answerQuery(nodes.peers, query, () => Effect.as(local, ""))
        return Effect.map(
          Effect.andThen(local, askAll(nodes.peers, query)("")),
          ({ missing }) => missingNodes(missing)
        )
      },
      merged: <Q, H>(
        { head, name, question }: ListKind<Q, H>,
        local: (question: Q) => Effect.Effect<NodeList<H>, GatewayError>
      ) => {
        const query = { name, question, answer: listOf(head) }
        answerQuery(nodes.peers, query, local)
        const ask = askAll(nodes.peers, query)
        return (asked: Q) =>
          Effect.map(Effect.all([local(asked), ask(asked)], { concurrency: 2 }), ([own, { answers, missing }]) => {
            const all = new Map([[nodes.id, own], ...answers])
            const lists = new Map(Array.from(all, ([node, { items }]) => [node, items]))
            const heads = new Map(Array.from(all, ([node, { head }]) => [node, head]))
            return { items: Array.from(mergeItems(lists)), heads, missing }
          })
      },
      peers: nodes.peers
    }
  }
)
