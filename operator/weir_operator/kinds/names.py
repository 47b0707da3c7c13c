"""Every name that the operator gives or looks for on the cluster."""

from __future__ import annotations

from typing import Final

GROUP: Final = "weir.dev"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"

SMP_ROUTER: Final = "SMPRouter"
NTF_ROUTER: Final = "NTFRouter"
SMP_SERVICE: Final = "SMPService"
PLURALS: Final = {SMP_ROUTER: "smprouters", NTF_ROUTER: "ntfrouters", SMP_SERVICE: "smpservices"}

FINALIZER: Final = f"{GROUP}/ordered-delete"

MANAGED_BY: Final = "app.kubernetes.io/managed-by"
MANAGER: Final = "weir-operator"  # the field manager, the user agent and the name of the Lease, too
# The object that a child belongs to: its kind in lower case, and its name under one of two labels.
OWNER_KIND: Final = f"{GROUP}/owner"
ROUTER: Final = f"{GROUP}/router"
SERVICE: Final = f"{GROUP}/service"

# A pod template changes with the configuration, so that a change rolls the edges.
CONFIG_HASH: Final = f"{GROUP}/config-hash"
# kubectl annotate smpr NAME weir.dev/renew-certificate=<anything new> renews the online certificate at once.
RENEW: Final = f"{GROUP}/renew-certificate"
# kubectl annotate smpr NAME weir.dev/rotate-redis-password=<anything new> gives the embedded Redis a new password.
ROTATE_PASSWORD: Final = f"{GROUP}/rotate-redis-password"
PASSWORD_SWITCHED: Final = f"{GROUP}/redis-password-switched"
# kubectl annotate ntfr NAME weir.dev/rotate-vapid-key=<anything new> gives Web Push a new key beside the old one.
ROTATE_VAPID: Final = f"{GROUP}/rotate-vapid-key"
VAPID_ADDED: Final = f"{GROUP}/vapid-key-added"
# The value of this annotation is the fingerprint, or the key of Web Push, that may be given up. No other way gives a
# router a new address.
REPLACE_ADDRESS: Final = f"{GROUP}/replace-address"

SMP_PORT: Final = 5223
NTF_PORT: Final = 443
NTF_TARGET_PORT: Final = 5443  # in the pod, which may not use ports below 1024
HTTP_PORT: Final = 8000
CONTROL_PORT: Final = 5224
REDIS_PORT: Final = 6379

CONFIG_DIR: Final = "/etc/weir/config"
CONFIG_FILE: Final = "weir.toml"
SECRET_DIR: Final = "/etc/weir/edge"
DATA_DIR: Final = "/var/lib/weir"
APNS_DIR: Final = "/etc/weir/apns"
APNS_CA_DIR: Final = "/etc/weir/apns-ca"
WEB_PUSH_DIR: Final = "/etc/weir/web-push"
WEB_PUSH_CA_DIR: Final = "/etc/weir/web-push-ca"
REDIS_SECRET_DIR: Final = "/etc/weir/store"

CA_CERT: Final = "ca.crt"
CA_KEY: Final = "ca.key"
SERVER_CERT: Final = "server.crt"
SERVER_KEY: Final = "server.key"
TLS_CERT: Final = "tls.crt"
TLS_KEY: Final = "tls.key"
PLACEMENT_KEY: Final = "placement.key"
STORAGE_KEY: Final = "storage.key"
VAPID_KEY: Final = "vapid.key"
REDIS_PASSWORD: Final = "redis-password"
CONTROL_ADMIN: Final = "admin-password"
CONTROL_USER: Final = "user-password"
ADDRESS: Final = "address"


def owner_label(kind: str) -> str:
    return kind.lower()


def name_label(kind: str) -> str:
    return SERVICE if kind == SMP_SERVICE else ROUTER


def identity(name: str) -> str:
    return f"{name}-identity"


def store(name: str) -> str:
    return f"{name}-store"


def control(name: str) -> str:
    return f"{name}-control"


def edge(name: str) -> str:
    return f"{name}-edge"


def config(name: str) -> str:
    return f"{name}-config"


def address(name: str) -> str:
    return f"{name}-address"


def edges_service(name: str) -> str:
    return f"{name}-edges"


def http_service(name: str) -> str:
    return f"{name}-http"


def redis(name: str) -> str:
    return f"{name}-redis"


def vapid(name: str) -> str:
    return f"{name}-vapid"


def service_keys(name: str) -> str:
    return f"{name}-service"
