import type { NonEmptyReadonlyArray } from "effect/Array"
import * as Channel from "effect/Channel"
import type * as Effect from "effect/Effect"
import type * as Pull from "effect/Pull"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"

/**
 * The pull that a stream is made of, for one reader who asks again only when it has been answered: unlike that of
 * `Stream.toPull` it has no lock, which is five steps for each chunk. The scope holds what the stream needs.
 */
export const pullOf = <A, E, R>(
  stream: Stream.Stream<A, E, R>,
  scope: Scope.Scope
): Effect.Effect<Pull.Pull<NonEmptyReadonlyArray<A>, E, void, R>, never, R> =>
  Channel.toPullScoped(Stream.toChannel(stream), scope)
