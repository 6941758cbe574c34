#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
#
# Writes a file once this machine's cloud says that it will be taken away, for hlaunch --drain-file:
#
#     spot_notice.sh /run/spot-notice &
#     hlaunch --nnodes 2:4 --max-restarts 10 --rdzv-endpoint head --drain-file /run/spot-notice train.py
#
# It speaks IMDSv2 of AWS, which asks for a token first. METADATA and EVERY (seconds) are for trying
# it. A rendezvous service on a machine that stays lets every node of the job be replaced.
set -u
file=${1:?usage: spot_notice.sh FILE}
metadata=${METADATA:-http://169.254.169.254}
rm -f "$file"
while :; do
    token=$(curl -sf -m 2 --noproxy '*' -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 60' \
        "$metadata/latest/api/token") || token=
    if notice=$(curl -sf -m 2 --noproxy '*' -H "X-aws-ec2-metadata-token: $token" \
        "$metadata/latest/meta-data/spot/instance-action"); then
        echo "the cloud takes this machine: $notice" > "$file.new" && mv "$file.new" "$file"
        exit 0
    fi
    sleep "${EVERY:-5}"
done
