/**
 * `model-gateway/transducer`: pure stream machines, and the operator that runs one over a `Stream`.
 */
export { stripReferenceMarkers } from "./domain/stream/referenceMarkers.ts"
export { encodeSse, makeSseDecoder, sseComment, sseDone } from "./domain/stream/sse.ts"
export type { SseDecoder, SseEvent } from "./domain/stream/sse.ts"
export { compileStopSequences, stopMachine } from "./domain/stream/stopSequences.ts"
export type { StopMachine, StopSequences } from "./domain/stream/stopSequences.ts"
export { transduce } from "./domain/stream/transduce.ts"
export { compose, run } from "./domain/stream/transducer.ts"
export type { Machine, Transducer } from "./domain/stream/transducer.ts"
