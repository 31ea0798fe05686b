/**
 * What the parent and its workers tell each other over the channel between them.
 */

/** Tells a process that it is a worker, with one of these values. */
export const workerVariable = "GATEWAY_WORKER_ROLE"
/** A worker that prints the banner. */
export const announcing = "announces"
export const silent = "silent"

/** Descriptor of the listening socket that a worker inherits. */
export const socketDescriptor = 4

export type ToWorker =
  /** Ends once its connections have closed. */
  | { readonly type: "retire" }
  /** Drains; `force` ends the drain early. */
  | { readonly type: "stop" }
  | { readonly type: "force" }
  /** Asks for the metrics of this worker. */
  | { readonly type: "measure" }
  /** The metrics of the machine, for the request with this number. */
  | { readonly type: "measured"; readonly id: number; readonly metrics: string }

export type ToParent =
  /** The worker serves. */
  | { readonly type: "ready" }
  /** The metrics of this worker, in the Prometheus text format. */
  | { readonly type: "metrics"; readonly metrics: string }
  /** Asks for the metrics of the machine. */
  | { readonly type: "ask"; readonly id: number }
