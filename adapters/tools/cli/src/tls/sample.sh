#!/bin/sh
# A development authority, and key and trust stores for each member in all three formats.
#
# NEVER FOR PRODUCTION: the authority's key lies beside what it signs, and one password opens all.
#
# Needs openssl; and keytool for JKS, and for trust in PKCS12, which Java takes only with keytool's mark.
set -eu
umask 077
cd "$(dirname "$0")"
days=365
[ ! -e password ] || { echo "there are stores here already" >&2; exit 1; }
openssl rand -hex 16 > password

openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days $days -sha256 \
    -subj "/CN=quorate development authority (never for production)" -addext keyUsage=critical,keyCertSign,cRLSign \
    -keyout authority.key -out trust.pem 2> openssl.log

member() {
    cat > extensions <<END
subjectAltName=$2
keyUsage=critical,digitalSignature
extendedKeyUsage=serverAuth,clientAuth
END
    openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "/CN=$1" \
        -keyout key -out request 2>> openssl.log
    openssl x509 -req -in request -CA trust.pem -CAkey authority.key -CAcreateserial -days $days -sha256 \
        -extfile extensions -out certificate 2>> openssl.log
    cat key certificate trust.pem > "$1.pem"
    openssl pkcs12 -export -inkey key -in certificate -certfile trust.pem -name "$1" -passout file:password \
        -out "$1.p12"
    rm key request certificate extensions
    ! command -v keytool > /dev/null || keytool -importkeystore -noprompt -srckeystore "$1.p12" -srcstoretype PKCS12 \
        -srcstorepass:file password -destkeystore "$1.jks" -deststoretype JKS -deststorepass:file password 2>> keytool.log
    echo "made $1.pem, $1.p12$([ ! -e "$1.jks" ] || echo ", $1.jks")"
}

