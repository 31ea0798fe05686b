/**
 * Where the gateway listens, and the error if it cannot.
 */
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"

/** Where to listen. The system chooses a port for 0. */
export interface ListenOptions {
  readonly port: number
  readonly host: string
  /** Descriptor of an inherited listening socket, instead of host and port. */
  readonly descriptor?: number | undefined
}

/** Listening failed: the address or port is in use or unavailable. */
export class CannotListen extends Schema.TaggedError<CannotListen>()("CannotListen", { message: Schema.String }) {}

const reasons: Readonly<Record<string, string>> = {
  EADDRINUSE: "another process already listens there; set PORT to another port",
  EACCES: "ports below 1024 need more rights; set PORT to another port",
  EADDRNOTAVAIL: "this machine has no such address; set HOST to one that it has",
  ENOTFOUND: "there is no such name; set HOST to an address of this machine"
}

/** The error for a cause that Node reports. */
export const cannotListen = ({ descriptor, host, port }: ListenOptions, cause: unknown): CannotListen => {
  const code = Predicate.hasProperty(cause, "code") ? String(cause.code) : String(cause)
  if (descriptor !== undefined) {
    return new CannotListen({ message: `Cannot listen on descriptor ${descriptor}, which was inherited: ${code}` })
  }
  return new CannotListen({ message: `Cannot listen on ${host} port ${port}: ${reasons[code] ?? code}` })
}
