/**
 * Messages between the parent and its workers, over the IPC channel.
 */

/** The variable that makes a process a worker. Its value is one of the following. */
export const workerVariable = "GATEWAY_WORKER_ROLE"
/** A worker that prints the banner. */
export const announcing = "announces"
export const silent = "silent"

/** Descriptor of the listening socket that a worker inherits. */
export const socketDescriptor = 4

/** Milliseconds between the heartbeats of a worker. */
export const beatInterval = 5_000

export type ToWorker =
  /** Ends once its connections have closed. */
  | { readonly type: "retire" }
  /** Drains; `force` ends the drain early. */
  | { readonly type: "stop" }
  | { readonly type: "force" }
  /** Requests the metrics of this worker. */
  | { readonly type: "measure" }
  /** The metrics of the machine, for the request with this number. */
  | { readonly type: "machineMetrics"; readonly id: number; readonly metrics: string }

export type ToParent =
  /** The worker serves. */
  | { readonly type: "ready" }
  | { readonly type: "beat" }
  /** The worker received a signal of its own, and retires once another one serves. */
  | { readonly type: "replace" }
  /** The metrics of this worker, in the Prometheus text format. */
  | { readonly type: "metrics"; readonly metrics: string }
  /** Requests the metrics of the machine. */
  | { readonly type: "requestMetrics"; readonly id: number }
