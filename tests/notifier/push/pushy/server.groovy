// Pushy's mock server: server.groovy PORT STREAMS CERTIFICATE KEY PUBLIC-KEY
//
// Pushy's own check of the web token takes DER signatures alone, so Java's checks it here: r and s, as JWS has them. The
// first byte of a device token names the answer.
import com.eatthepath.pushy.apns.server.*
import io.netty.handler.codec.http2.Http2Headers
import java.nio.charset.StandardCharsets
import java.security.KeyFactory
import java.security.Signature
import java.security.spec.X509EncodedKeySpec
import java.time.Instant

def (port, streams, certificate, key, publicKey) = args
def spki = Base64.decoder.decode(new File(publicKey).readLines().findAll { !it.startsWith('-') }.join(''))
def teamKey = KeyFactory.getInstance('EC').generatePublic(new X509EncodedKeySpec(spki))

def check = { Http2Headers headers ->
  def words = (headers.get('authorization') ?: '').toString().split(' ')
  if (words.length != 2 || words[0] != 'bearer') throw new RejectedNotificationException(RejectionReason.MISSING_PROVIDER_TOKEN)
  def parts = words[1].split(/\./)
  def verifier = Signature.getInstance('SHA256withECDSAinP1363Format')
  verifier.initVerify(teamKey)
  verifier.update("${parts[0]}.${parts[1]}".getBytes(StandardCharsets.US_ASCII))
  if (!verifier.verify(Base64.urlDecoder.decode(parts[2]))) throw new RejectedNotificationException(RejectionReason.INVALID_PROVIDER_TOKEN)
}

def answers = [
  '01': { throw new RejectedNotificationException(RejectionReason.BAD_DEVICE_TOKEN) },
  '02': { throw new RejectedNotificationException(RejectionReason.DEVICE_TOKEN_NOT_FOR_TOPIC) },
  '03': { throw new UnregisteredDeviceTokenException(Instant.now()) },
  '04': { throw new RejectedNotificationException(RejectionReason.EXPIRED_PROVIDER_TOKEN) },
  '05': { throw new RejectedNotificationException(RejectionReason.PAYLOAD_TOO_LARGE) },
  '06': { throw new RejectedNotificationException(RejectionReason.TOO_MANY_REQUESTS) },
  '07': { throw new RejectedNotificationException(RejectionReason.SERVICE_UNAVAILABLE) },
]

def server = new MockApnsServerBuilder()
  .setServerCredentials(new File(certificate), new File(key), null)
  .setMaxConcurrentStreams(streams as int)
  .setUseAlpn(true)
  .setHandlerFactory({ session ->
    { Http2Headers headers, payload ->
      check(headers)
      if (payload.readableBytes() > 4096) throw new RejectedNotificationException(RejectionReason.PAYLOAD_TOO_LARGE)
      def token = headers.get(':path').toString().split('/').last()
      answers[token.substring(0, 2)]?.call()
    } as PushNotificationHandler
  } as PushNotificationHandlerFactory)
  .build()

server.start(port as int).get()
println 'ready'
System.in.read()
server.shutdown().get()
