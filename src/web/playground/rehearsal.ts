/**
 * A rehearsal: one request of the playground for which targets of a route fail, so that it proves the fallback.
 */
import * as Exit from "effect/Exit"
import * as Atom from "effect/reactivity/Atom"
import { call } from "../state/actions.ts"
import { causeText } from "../state/failure.ts"
import { registry } from "../state/registry.ts"
import { openConversation } from "./state.ts"

export interface Rehearsal {
  readonly token: string
  /** What the request has to ask for. */
  readonly route: string
  /** The targets that fail. */
  readonly without: ReadonlyArray<string>
  /** Unix milliseconds. */
  readonly until: number
}

/** The rehearsal that the next request is; `undefined` for an ordinary one. */
export const rehearsalAtom = Atom.keepAlive(Atom.make<Rehearsal | undefined>(undefined))

/** Makes the next request of the playground for a route a rehearsal. Resolves to why it is refused, or to `undefined`. */
export const rehearse = async (route: string, without: ReadonlyArray<string>): Promise<string | undefined> => {
  const exit = await call((client) => client["admin-routes"].rehearse({ payload: { route, without } }))
  if (Exit.isFailure(exit)) return causeText(exit.cause)
  const { expires_at, route: id, token } = exit.value
  openConversation({ model: id }, [])
  registry.set(rehearsalAtom, { token, route: id, without, until: expires_at })
  return undefined
}

/** Makes the next request an ordinary one. */
export const endRehearsal = (): void => registry.set(rehearsalAtom, undefined)

/** The token for a request for a model, once; `undefined` for an ordinary request. */
export const takeRehearsal = (model: string): string | undefined => {
  const rehearsal = registry.get(rehearsalAtom)
  if (rehearsal === undefined || rehearsal.route !== model.trim()) return undefined
  endRehearsal()
  return rehearsal.token
}
