/**
 * What each node keeps to itself, shown as one: ids that say the node, and lists that are put together of all.
 */
import * as Effect from "effect/Effect"
import { mostAnswered } from "../cluster/nodes/asking.ts"
import { Nodes } from "../cluster/nodes/Nodes.ts"
import type { GatewayError } from "../domain/GatewayError.ts"

/** An item of a list, as JSON. */
export interface NodeItem {
  /** Unix milliseconds, by which lists are put together. */
  readonly at: number
  /** A number of the node's own, for whoever goes on after the item. */
  readonly place: number
  readonly json: string
}

/** An item and the node that has it. */
export interface PlacedItem extends NodeItem {
  readonly node: string
}

/** What the lists of all nodes say together. */
export interface MergedItems {
  /** Newest first. */
  readonly items: ReadonlyArray<PlacedItem>
  /** What each node says beside its items. */
  readonly heads: ReadonlyMap<string, string>
  /** Nodes that did not answer. */
  readonly missing: ReadonlyArray<string>
}

/** A list of this node: a text that stands for it beside its items, newest first. */
export interface NodeList {
  readonly head: string
  readonly items: ReadonlyArray<NodeItem>
}

/** The list as lines, as many of the newest as fit. JSON has no line breaks of its own. */
const writeList = ({ head, items }: NodeList): string => {
  const lines = [head]
  let length = head.length
  for (const { at, json, place } of items) {
    const line = `${at} ${place} ${json}`
    length += line.length + 1
    if (length > mostAnswered) break
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

/** Puts lists together, newest first; each keeps its own order, whatever its clock says. */
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

/** What handlers do over all nodes. */
export interface NodeItems {
  /** The id of this node where several share a store; `undefined` elsewhere. */
  readonly node: () => string | undefined
  /** An id as callers see it. */
  readonly named: (id: string) => string
  /** The other node that an id names, and the id there; `undefined` where it is this node's own. */
  readonly elsewhere: (id: string) => { readonly node: string; readonly id: string } | undefined
  /** An id of this node's own without the node. */
  readonly own: (id: string) => string
  /** Says who did not answer, where several share a store. */
  readonly told: (missing: ReadonlyArray<string>) => { readonly nodes_missing?: ReadonlyArray<string> }
  /** Makes a list of all nodes; `local` gives this node's. */
  readonly merged: (
    kind: string,
    local: (question: string) => Effect.Effect<NodeList, GatewayError>
  ) => (question: string) => Effect.Effect<MergedItems, GatewayError>
  readonly peers: Nodes["Service"]["peers"]
}

/** Makes them. */
export const makeNodeItems: Effect.Effect<NodeItems, never, Nodes> = Effect.map(Nodes, (nodes) => {
  const node = () => nodes.store() === undefined ? undefined : nodes.id
  const split = (id: string) => {
    const colon = id.indexOf(":")
    return node() === undefined || colon === -1 ? undefined : { node: id.slice(0, colon), id: id.slice(colon + 1) }
  }
  return {
    node,
    named: (id) => node() === undefined ? id : `${nodes.id}:${id}`,
    elsewhere: (id) => {
      const at = split(id)
      return at === undefined || at.node === nodes.id ? undefined : at
    },
    own: (id) => split(id)?.id ?? id,
    told: (missing) => node() === undefined ? {} : { nodes_missing: missing },
    merged: (kind, local) => {
      nodes.peers.answers(kind, (question) => Effect.map(local(question), writeList))
      return Effect.fnUntraced(function*(question: string) {
        const [own, { answers, missing }] = yield* Effect.all([local(question), nodes.peers.askAll(kind, question)], {
          concurrency: 2
        })
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
})
