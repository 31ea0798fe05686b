/**
 * Recordings of each node shown as one list: ids that name the node, and lists merged over all nodes.
 */
import * as Effect from "effect/Effect"
import type { GatewayError } from "../domain/GatewayError.ts"
import { Nodes } from "./nodes/Nodes.ts"
import { longestReply } from "./nodes/peers.ts"

/** An item of a list, as JSON. */
export interface NodeItem {
  /** Unix milliseconds; lists are merged by it. */
  readonly at: number
  /** The node's own number of the item; the next page goes on from it. */
  readonly place: number
  readonly json: string
}

/** An item and the node that has it. */
export interface PlacedItem extends NodeItem {
  readonly node: string
}

/** The lists of all nodes, merged. */
interface MergedItems {
  /** Newest first. */
  readonly items: ReadonlyArray<PlacedItem>
  /** The `head` of each node's list. */
  readonly heads: ReadonlyMap<string, string>
  /** Nodes that did not answer. */
  readonly missing: ReadonlyArray<string>
}

/** The list of one node: its items, newest first, and a text about the list as a whole. */
export interface NodeList {
  readonly head: string
  readonly items: ReadonlyArray<NodeItem>
}

/** The list as lines: as many of the newest items as fit into an answer. Compact JSON has no line breaks. */
const writeList = ({ head, items }: NodeList): string => {
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

const readList = (text: string): NodeList => {
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
  /** Makes the merged list of a kind; `local` returns the list of this node. A question is a text for `local` of each node. */
  readonly merged: (
    kind: string,
    local: (question: string) => Effect.Effect<NodeList, GatewayError>
  ) => (question: string) => Effect.Effect<MergedItems, GatewayError>
  /**
   * Makes the lookup of one item at the node that its id names; `undefined` if that node has gone. `local` returns the item of
   * this node as JSON; `question` makes the question for it from the node's own id.
   */
  readonly one: (
    kind: string,
    local: (question: string) => Effect.Effect<string, GatewayError>
  ) => (id: string, question?: (own: string) => string) => Effect.Effect<string | undefined, GatewayError>
  /** Makes an action at all nodes; it returns the reply field `nodes_missing`. */
  readonly everywhere: (
    kind: string,
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
      one: (kind, local) => {
        nodes.peers.answers(kind, local)
        return (id, question = (own) => own) => {
          const at = elsewhere(id)
          return at === undefined ? local(question(own(id))) : nodes.peers.queryOne(at.node, kind, question(at.id))
        }
      },
      everywhere: (kind, local) => {
        nodes.peers.answers(kind, () => Effect.as(local, ""))
        return Effect.map(
          Effect.andThen(local, nodes.peers.queryAll(kind, "")),
          ({ missing }) => missingNodes(missing)
        )
      },
      merged: (kind, local) => {
        nodes.peers.answers(kind, (question) => Effect.map(local(question), writeList))
        return Effect.fnUntraced(function*(question: string) {
          const [own, { answers, missing }] = yield* Effect.all(
            [local(question), nodes.peers.queryAll(kind, question)],
            {
              concurrency: 2
            }
          )
          const heads = new Map([[nodes.id, own.head]])
          const lists = new Map([[nodes.id, own.items]])
          for (const [id, text] of answers) {
            yield* Effect.yieldNow
            const { head, items } = readList(text)
            heads.set(id, head)
            lists.set(id, items)
          }
          return { items: Array.from(mergeItems(lists)), heads, missing }
        })
      },
      peers: nodes.peers
    }
  }
)
