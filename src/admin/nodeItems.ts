/**
 * Recordings of each node shown as one list: ids that name the node, and lists merged over all nodes.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as SchemaTransformation from "effect/SchemaTransformation"
import type * as Scope from "effect/Scope"
import type { GatewayError } from "../domain/GatewayError.ts"
import { Nodes } from "./nodes/Nodes.ts"
import { longestReply } from "./nodes/peers.ts"
import { answerQuery, askAll, askOne, noQuestion, type Query } from "./nodes/Query.ts"

/** The place of an item in the lists. */
interface ItemPlace {
  /** Unix milliseconds; lists are merged by it. */
  readonly at: number
  /** The node's own number of the item; the next page goes on from it. */
  readonly place: number
}

/** An item of this node. */
export interface NodeItem<A> extends ItemPlace {
  readonly value: A
}

/** The list of this node: its items, newest first, and what is said about the list as a whole. */
export interface NodeList<H, A> {
  readonly head: H
  readonly items: ReadonlyArray<NodeItem<A>>
}

/** An item of any node. */
export interface PlacedItem<A> extends ItemPlace {
  readonly node: string
  /** The value; none in the form of another version. */
  readonly read: () => Option.Option<A>
}

/** The lists of all nodes, merged. */
interface MergedItems<H, A> {
  /** Newest first. */
  readonly items: ReadonlyArray<PlacedItem<A>>
  /** The `head` of each node's list. */
  readonly heads: ReadonlyMap<string, H>
  /** Nodes that did not answer. */
  readonly missing: ReadonlyArray<string>
}

/** How items are written for other nodes, in compact JSON, and read. */
interface ItemForm<A> {
  readonly write: (value: A) => string
  readonly read: (json: string) => Option.Option<A>
}

/** Items that have the form of a Schema. */
export const itemsOf = <A>(item: Schema.Codec<A, unknown>): ItemForm<A> => ({
  write: (value) => JSON.stringify(value),
  read: Schema.decodeUnknownOption(Schema.fromJsonString(item))
})

/** Items that are passed on as the JSON that they are. */
export const itemsAsTheyAre: ItemForm<string> = { write: (json) => json, read: Option.some }

/** The values of items, and the nodes with items of another form, which are left out. */
export const readItems = <A>(items: ReadonlyArray<PlacedItem<A>>) => {
  const unread = new Set<string>()
  const values = items.flatMap(({ node, read }) => {
    const value = read()
    if (Option.isSome(value)) return [value.value]
    unread.add(node)
    return []
  })
  return { values, unread }
}

/** A list as nodes send it. */
const SentList = Schema.Struct({
  head: Schema.String,
  items: Schema.Array(Schema.Struct({ at: Schema.Finite, place: Schema.Int, json: Schema.String }))
})

/** The list as lines: as many of the newest items as fit into an answer. Compact JSON has no line breaks. */
const writeList = ({ head, items }: typeof SentList.Type): string => {
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

const readList = (text: string): typeof SentList.Type => {
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
const listOf = <H>(head: Schema.Codec<H, string>) =>
  Schema.String.pipe(
    Schema.decodeTo(
      Schema.Struct({ head, items: SentList.fields.items }),
      SchemaTransformation.transform({ decode: readList, encode: writeList })
    )
  )

/** Merges lists, newest first. The order within each list is kept, so a wrong clock moves a node's items as a whole. */
function* mergeItems<A>(lists: ReadonlyArray<ReadonlyArray<PlacedItem<A>>>): Generator<PlacedItem<A>> {
  const heads = lists.map((items) => ({ items, next: 0 }))
  for (;;) {
    let newest: typeof heads[number] | undefined
    for (const list of heads) {
      const item = list.items[list.next]
      const best = newest?.items[newest.next]
      if (item !== undefined && (best === undefined || item.at > best.at)) newest = list
    }
    if (newest === undefined) return
    yield newest.items[newest.next++]!
  }
}

/** A kind of lists: the question to each node, the head of its list, and its items. */
interface ListKind<Q, H, A> {
  readonly name: string
  readonly question: Schema.Codec<Q, string>
  readonly head: Schema.Codec<H, string>
  readonly items: ItemForm<A>
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
  readonly merged: <Q, H, A>(
    kind: ListKind<Q, H, A>,
    local: (question: Q) => Effect.Effect<NodeList<H, A>, GatewayError, Scope.Scope>
  ) => (question: Q) => Effect.Effect<MergedItems<H, A>, GatewayError, Scope.Scope>
  /**
   * Makes the lookup of one item at the node that its id names; `undefined` if that node has gone. `local` returns the item of
   * this node; `question` makes the question for it from the node's own id.
   */
  readonly one: <Q, A>(
    query: Query<Q, A>,
    local: (question: Q) => Effect.Effect<A, GatewayError, Scope.Scope>
  ) => (id: string, question: (own: string) => Q) => Effect.Effect<A | undefined, GatewayError, Scope.Scope>
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
      one: <Q, A>(query: Query<Q, A>, local: (question: Q) => Effect.Effect<A, GatewayError, Scope.Scope>) => {
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
      merged: <Q, H, A>(
        { head, items: form, name, question }: ListKind<Q, H, A>,
        local: (question: Q) => Effect.Effect<NodeList<H, A>, GatewayError, Scope.Scope>
      ) => {
        const query = { name, question, answer: listOf(head) }
        answerQuery(nodes.peers, query, (question) =>
          Effect.map(local(question), ({ head, items }) => ({
            head,
            items: items.map(({ at, place, value }) => ({ at, place, json: form.write(value) }))
          })))
        const ask = askAll(nodes.peers, query)
        return (asked: Q) =>
          Effect.map(Effect.all([local(asked), ask(asked)], { concurrency: 2 }), ([own, { answers, missing }]) => {
            const heads = new Map([[nodes.id, own.head]])
            const lists: Array<ReadonlyArray<PlacedItem<A>>> = [
              own.items.map(({ at, place, value }) => ({ at, place, node: nodes.id, read: () => Option.some(value) }))
            ]
            for (const [node, { head, items }] of answers) {
              heads.set(node, head)
              lists.push(items.map(({ at, json, place }) => ({ at, place, node, read: () => form.read(json) })))
            }
            return { items: Array.from(mergeItems(lists)), heads, missing }
          })
      },
      peers: nodes.peers
    }
  }
)
